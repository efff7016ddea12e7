// Worker in Go: one kind of work over goroutines, the same as worker.py does over packages.
//
// Like the Python sides it runs on one core at a time (GOMAXPROCS=1) and without a garbage
// collector. With more, two goroutines that yield would not take turns but run side by side.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	sampleNs     = 20_000_000
	batch        = 100
	parkedAtOnce = 50_000
	kb           = 1e3
	gb           = 1e9
)

type parameters struct {
	Kind    string  `json:"kind"`
	Seconds float64 `json:"seconds"`
	Python  int     `json:"python"`
	C       int     `json:"c"`
	Count   int     `json:"count"`
	Collect bool    `json:"collector"`
	Limit   float64 `json:"limit_s"`
	Result  string  `json:"result"`
}

type outcome struct {
	Rate    float64            `json:"rate"`
	Figures map[string]float64 `json:"figures,omitempty"`
}

// A sample does something so many times and returns the ns that it took.
type sample func(int) int64

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

// ---- the work ----------------------------------------------------------------------------------

// both runs two goroutines to their ends.
func both(one, two func()) int64 {
	var ended sync.WaitGroup
	ended.Add(2)
	start := time.Now()
	go func() { one(); ended.Done() }()
	go func() { two(); ended.Done() }()
	ended.Wait()
	return time.Since(start).Nanoseconds()
}

func channel(trips int) int64 {
	ping, pong := make(chan struct{}), make(chan struct{})
	return both(
		func() {
			for i := 0; i < trips; i++ {
				ping <- struct{}{}
				<-pong
			}
		},
		func() {
			for i := 0; i < trips; i++ {
				<-ping
				pong <- struct{}{}
			}
		})
}

//go:noinline
func under(frames int, action func()) int {
	if frames == 0 {
		action()
		return 0
	}
	return under(frames-1, action) + 1 // something is left to do: no tail call
}

func schedule(frames int) sample {
	return func(switches int) int64 {
		body := func() {
			under(frames, func() {
				for i := 0; i < switches/2; i++ {
					runtime.Gosched()
				}
			})
		}
		return both(body, body)
	}
}

func spawn(count int) int64 {
	start := time.Now()
	for i := 0; i < count/batch; i++ {
		var ended sync.WaitGroup
		ended.Add(batch)
		for j := 0; j < batch; j++ {
			go ended.Done()
		}
		ended.Wait()
	}
	return time.Since(start).Nanoseconds()
}

type parked struct {
	gate    chan struct{}
	waiting atomic.Int64
	woken   atomic.Int64
	ended   sync.WaitGroup
}

func (all *parked) park(count int) {
	wanted := all.waiting.Load() + int64(count)
	all.ended.Add(count)
	for i := 0; i < count; i++ {
		go func() {
			all.waiting.Add(1)
			<-all.gate
			all.woken.Add(1)
			all.ended.Done()
		}()
	}
	for all.waiting.Load() < wanted {
		runtime.Gosched()
	}
}

func (all *parked) wake() {
	for i := all.waiting.Load(); i > 0; i-- {
		all.gate <- struct{}{}
	}
	all.ended.Wait()
}

// ---- measuring ---------------------------------------------------------------------------------

func calibrated(one sample, seconds float64) int {
	wanted := int64(min(sampleNs, seconds*1e9/4))
	count := batch
	for one(count) < wanted {
		count *= 2
	}
	return count
}

// fastest returns what one repetition takes in the fastest sample of each, taken in turns.
func fastest(samples []sample, seconds float64) []float64 {
	counts := make([]int, len(samples))
	for place, one := range samples {
		counts[place] = calibrated(one, seconds)
	}
	times := make([][]float64, len(samples))
	deadline := time.Now().Add(time.Duration(seconds * 1e9))
	for {
		for place, one := range samples {
			taken := float64(one(counts[place])) / float64(counts[place])
			times[place] = append(times[place], taken)
		}
		if time.Now().After(deadline) {
			break
		}
	}
	found := make([]float64, len(samples))
	for place := range times {
		sort.Float64s(times[place])
		found[place] = times[place][0]
	}
	return found
}

// memory returns what the kernel says of this process, in bytes.
func memory(file, name string) float64 {
	text, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		fail(err.Error())
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, name+":") {
			kib, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			if err == nil {
				return kib * 1024
			}
		}
	}
	fail("/proc/self/" + file + " says nothing of " + name)
	return 0
}

func held() float64 {
	return memory("smaps_rollup", "Rss") + memory("status", "VmPTE")
}

func sizes(count int) outcome {
	all := parked{gate: make(chan struct{})}
	all.park(1)
	before := held()
	all.park(count)
	return outcome{Rate: (held() - before) / float64(count) / kb}
}

func many(count int) outcome {
	all := parked{gate: make(chan struct{})}
	start := time.Now()
	for first := 0; first < count; first += parkedAtOnce {
		all.park(min(parkedAtOnce, count-first))
	}
	waking := time.Now()
	all.wake()
	end := time.Now()
	if woken := all.woken.Load(); woken != int64(count) {
		fail(fmt.Sprintf("%d of %d were woken", woken, count))
	}
	return outcome{end.Sub(start).Seconds(), map[string]float64{
		"wake_s":  end.Sub(waking).Seconds(),
		"peak_gb": (memory("status", "VmHWM") + memory("status", "VmPTE")) / gb,
	}}
}

func measured(asked parameters) outcome {
	switch asked.Kind {
	case "channel":
		return outcome{Rate: fastest([]sample{channel}, asked.Seconds)[0]}
	case "schedule":
		return outcome{Rate: fastest([]sample{schedule(0)}, asked.Seconds)[0]}
	case "spawn":
		return outcome{Rate: fastest([]sample{spawn}, asked.Seconds)[0]}
	case "depth":
		found := fastest([]sample{schedule(0), schedule(asked.Python)}, asked.Seconds)
		return outcome{found[1], map[string]float64{
			"shallow_ns": found[0], "to_shallow": found[1] / found[0]}}
	case "parked":
		return sizes(asked.Count)
	default:
		return many(asked.Count)
	}
}

func main() {
	var asked parameters
	if len(os.Args) != 2 {
		fail("one argument is expected: the parameters as JSON")
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &asked); err != nil {
		fail(err.Error())
	}
	// Bounds its life at no cost, unlike a timer, for which each switch would look at the clock:
	// the kernel ends a process with so much CPU time, and one that only waits Go ends itself.
	seconds := uint64(asked.Limit) + 1
	limit := syscall.Rlimit{Cur: seconds, Max: seconds}
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &limit); err != nil {
		fail(err.Error())
	}
	runtime.GOMAXPROCS(1)
	if !asked.Collect {
		debug.SetGCPercent(-1)
	}
	text, err := json.Marshal(measured(asked))
	if err == nil {
		err = os.WriteFile(asked.Result, text, 0o600)
	}
	if err != nil {
		fail(err.Error())
	}
}
