// How the site's search orders what it finds: the page that says what to do comes before the page that lists all.
// Sphinx puts this in place of its own scorer, of which the numbers below `score` are.

const FOLDERS = {"how-to": 10, tutorial: 8, explanation: 2, benchmarks: -6, project: -6, contributing: -6, api: -6};
const WORDS = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);

var Scorer = {
  // result: [page, title, anchor, description, score, file]
  score: ([page, title, , , score]) => {
    const [folder, name] = page.split("/");
    const said = title.toLowerCase();
    const named = WORDS.filter((word) => said.includes(word)).length
      + WORDS.filter((word) => name && name.includes(word)).length;
    return score + (FOLDERS[folder] || 0) + 5 * named - (name === "index" ? 10 : 0);
  },

  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
