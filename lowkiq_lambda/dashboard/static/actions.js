"use strict";
// Actions work without this script. It selects all rows at once, and runs the steps of an action until a person pauses it.
(() => {
  const boxes = () => [...document.querySelectorAll("input[name=ids][form=picked][type=checkbox]")];

  function count() {
    const all = document.querySelector("[data-pick-all]"), label = document.querySelector("[data-picked]");
    const rows = boxes(), picked = rows.filter((box) => box.checked).length;
    if (all) {
      all.closest("label").hidden = false;
      all.checked = picked > 0 && picked === rows.length;
      all.indeterminate = picked > 0 && picked < rows.length;
    }
    if (label) label.textContent = picked ? `${picked} selected` : "Selected";
    for (const button of document.querySelectorAll('button[form=picked][value^="picked:"]')) button.disabled = !picked;
  }

  // With shift, all rows from the last click on.
  let last;
  document.addEventListener("click", (event) => {
    const rows = boxes(), place = rows.indexOf(event.target);
    if (place < 0) return;
    const from = event.shiftKey ? rows.indexOf(last) : -1;
    if (from >= 0) for (const box of rows.slice(Math.min(from, place), Math.max(from, place) + 1)) box.checked = event.target.checked;
    last = event.target;
    count();
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("input[type=checkbox]")) count();
  });
  document.addEventListener("htmx:afterSwap", count);
  // A page from the browser's back/forward cache keeps its selection.
  window.addEventListener("pageshow", count);

  let halted = false;

  const notice = document.getElementById("notice");

  function show(form, running) {
    const halt = form.querySelector("[data-halt]");
    halt.hidden = !running;
    halt.disabled = false;
    form.querySelector("button[type=submit]").hidden = running;
    form.querySelector("a.button").hidden = running;
  }

  function nextStep() {
    const form = document.querySelector("[data-going] [data-go-on]");
    if (!form) return;
    show(form, !halted);
    if (!halted) htmx.trigger(form, "go");
  }

  document.addEventListener("click", (event) => {
    const form = event.target.closest("[data-go-on]");
    if (!form) return;
    if (event.target.matches("[data-halt]")) { halted = true; event.target.disabled = true; }
    if (event.target.matches("button[type=submit]")) halted = false;
  });
  document.addEventListener("htmx:afterSettle", (event) => { if (event.target.id === "bulk-action") nextStep(); });

  // The form keeps the state, so the action can continue.
  function stop(form, xhr) {
    halted = true;
    show(form, false);
    // The dashboard's own error is shown already.
    if (xhr.getResponseHeader("HX-Retarget")) return;
    const sentence = document.createElement("p");
    sentence.className = "notice";
    sentence.textContent = `${xhr.status ? `The server responded with an error (${xhr.status})` : "The server is unreachable"}. The action has stopped without losing anything. “${form.querySelector("button[type=submit]").textContent}” continues it.`;
    notice.replaceChildren(sentence);
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!event.target.matches("[data-go-on]")) return;
    notice.replaceChildren();
    show(event.target, true);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { successful, xhr } = event.detail;
    // The browser is on its way to the sign-in page.
    if (event.target.matches("[data-go-on]") && !successful && !xhr.getResponseHeader("HX-Redirect")) stop(event.target, xhr);
  });
  document.addEventListener("DOMContentLoaded", count);

  // A page that is the response of a form gets an address that the browser can go back to.
  const answer = document.querySelector("[data-at]");
  if (answer) history.replaceState(null, "", answer.dataset.at);
})();
