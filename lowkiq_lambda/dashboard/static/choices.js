"use strict";
// What a person has chosen for this browser, before anything is drawn: the zone of times, and the theme.
(() => {
  const root = document.documentElement;
  const USUAL = { times: "local", theme: "system" };

  function kept(name) {
    // A browser may keep nothing.
    try { return localStorage.getItem(`lowkiq-${name}`) || USUAL[name]; } catch { return USUAL[name]; }
  }

  function apply() {
    for (const name of Object.keys(USUAL)) {
      root.dataset[name] = kept(name);
      for (const button of document.querySelectorAll(`[data-switch="${name}"]`)) button.ariaPressed = String(button.value === kept(name));
    }
  }

  apply();
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    for (const part of document.querySelectorAll(".switches")) part.hidden = false;
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-switch]");
    if (!button) return;
    try { localStorage.setItem(`lowkiq-${button.dataset.switch}`, button.value); } catch { return; }
    apply();
    // The texts of times are made when a page comes.
    if (button.dataset.switch === "times") location.reload();
  });
})();
