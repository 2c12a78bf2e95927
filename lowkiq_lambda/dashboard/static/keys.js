"use strict";
// Keys for those who prefer them: nothing needs one.
(() => {
  const box = document.getElementById("search"), list = document.getElementById("keys");
  let leader = 0;

  function move(step) {
    const rows = [...document.querySelectorAll("main tbody th a")].filter((link) => link.checkVisibility());
    const place = rows.indexOf(document.activeElement);
    rows[place < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, place + step))]?.focus();
  }

  function search() {
    box.focus();
    box.select();
  }

  const acts = { j: () => move(1), k: () => move(-1), "?": () => list?.showModal(), g: () => { leader = Date.now(); } };

  document.addEventListener("keydown", (event) => {
    const isControlled = event.ctrlKey || event.metaKey;
    const isTyping = event.target.matches?.("input:not([type=checkbox]), select, textarea");
    const isSearch = event.key === "/" ? !isControlled && !event.altKey && !isTyping : event.key === "k" && isControlled;
    if (box && isSearch) { event.preventDefault(); return search(); }
    if (isControlled || event.altKey || isTyping || list?.open) return;
    // The second key of two.
    const page = Date.now() - leader < 1500 && document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    leader = 0;
    if (page) location.assign(page.href);
    else if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
  document.addEventListener("click", (event) => { if (event.target.closest?.("[data-keys]")) list.showModal(); });
})();
