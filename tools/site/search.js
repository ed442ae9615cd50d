/* SPDX-License-Identifier: MIT
 *
 * Search without a server: the index is a script, which is loaded when the field is used first, so it works from file://.
 */
(function () {
  "use strict";
  var root = document.body.getAttribute("data-root");
  var input = document.querySelector("header input[type=search]");
  var list = document.querySelector("header .results");
  var waiting = [];

  function with_index(then) {
    if (window.sxe_index)
      return then();
    waiting.push(then);
    if (waiting.length > 1)
      return;
    var script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = function () { waiting.splice(0).forEach(function (f) { f(); }); };
    document.head.appendChild(script);
  }

  /* How well a word fits: the whole name, its begin, the begin of a part, any part, the text; 0: not at all. */
  function score_of(word, name, text) {
    var at = name.indexOf(word);
    if (name === word)
      return 100;
    if (at === 0)
      return 60;
    if (at > 0)
      return /[a-z0-9]/.test(name[at - 1]) ? 20 : 40;
    return text.indexOf(word) >= 0 ? 5 : 0;
  }

  function find(query) {
    var words = query.toLowerCase().split(/[\s()]+/).filter(Boolean);
    var found = [];
    if (words.length === 0)
      return found;
    window.sxe_index.forEach(function (entry) {
      var name = entry[0].toLowerCase(), text = entry[3].toLowerCase(), sum = 0;
      for (var i = 0; i < words.length; i++) {
        var score = score_of(words[i], name, text);
        if (score === 0)
          return;
        sum += score;
      }
      found.push([sum - Math.min(name.length, 90) / 10 + (entry[1] === "section" ? 0 : 3), entry]);
    });
    found.sort(function (a, b) { return b[0] - a[0]; });
    return found.map(function (pair) { return pair[1]; });
  }

  function show(entries, where) {
    where.textContent = "";
    entries.forEach(function (entry) {
      var item = document.createElement("li"), link = document.createElement("a");
      [["name", entry[0]], ["kind", entry[1]], ["text", entry[3]]].forEach(function (part) {
        var span = document.createElement("span");
        span.className = part[0];
        span.textContent = part[1];
        link.appendChild(span);
      });
      link.href = root + entry[2];
      item.appendChild(link);
      where.appendChild(item);
    });
  }

  function show_below() {
    with_index(function () {
      var entries = find(input.value).slice(0, 12);
      show(entries, list);
      list.hidden = entries.length === 0;
    });
  }

  function move(event) {
    var all = Array.prototype.slice.call(list.querySelectorAll("a"));
    var at = all.indexOf(document.activeElement);
    if (event.key === "Escape") {
      list.hidden = true;
      input.focus();
    } else if (!list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      at += event.key === "ArrowDown" ? 1 : -1;
      (at < 0 ? input : all[Math.min(at, all.length - 1)]).focus();
      event.preventDefault();
    }
  }

  input.addEventListener("focus", function () { with_index(function () {}); });
  input.addEventListener("input", show_below);
  input.form.addEventListener("keydown", move);
  document.addEventListener("click", function (event) { list.hidden = list.hidden || !input.form.contains(event.target); });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      input.focus();
      event.preventDefault();
    }
  });

  var current = document.querySelector("nav [aria-current]"), menu = document.querySelector("nav");
  if (current && menu.scrollHeight > menu.clientHeight)
    menu.scrollTop = Math.max(0, current.offsetTop - menu.clientHeight / 2);

  var query = /[?&]q=([^&]*)/.exec(location.search), found = document.getElementById("found");
  if (query && found) {
    input.value = decodeURIComponent(query[1].replace(/\+/g, " "));
    with_index(function () {
      var entries = find(input.value);
      show(entries.slice(0, 200), found);
      document.getElementById("said").textContent = entries.length + " found for “" + input.value + "”";
    });
  }
})();
