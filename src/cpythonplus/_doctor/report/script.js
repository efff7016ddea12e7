"use strict";
// Sorting tables and copying commands; all else works without it.
(function () {
  function value(row, column) {
    var cell = row.cells[column];
    var number = cell.getAttribute("data-v");
    return number === null ? cell.textContent.toLowerCase() : Number(number);
  }

  function sort(head, column) {
    var body = head.closest("table").tBodies[0];
    var down = head.getAttribute("aria-sort") !== "descending";
    var sign = down ? -1 : 1;
    var rows = Array.prototype.slice.call(body.rows);
    rows.sort(function (a, b) {
      var left = value(a, column), right = value(b, column);
      return left < right ? -sign : left > right ? sign : 0;
    });
    rows.forEach(function (row) { body.appendChild(row); });
    Array.prototype.forEach.call(head.parentNode.cells, function (other) {
      other.removeAttribute("aria-sort");
    });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function button(text, action) {
    var made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  }

  document.querySelectorAll("thead th").forEach(function (head) {
    var text = head.textContent;
    if (!text) return;
    var column = head.cellIndex;
    head.textContent = "";
    head.appendChild(button(text, function () { sort(head, column); }));
  });

  function select(code) {
    var range = document.createRange();
    range.selectNodeContents(code);
    var selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }

  document.querySelectorAll(".copy").forEach(function (block) {
    var code = block.querySelector("code");
    var made = button("copy", function () {
      function done() { made.textContent = "copied"; }
      function failed() { select(code); made.textContent = "selected"; }
      // A page that was opened as a file may have no clipboard.
      if (!navigator.clipboard) { failed(); return; }
      navigator.clipboard.writeText(code.textContent).then(done, failed);
    });
    made.setAttribute("aria-label", "copy the command");
    block.appendChild(made);
  });
}());
