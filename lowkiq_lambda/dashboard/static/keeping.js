"use strict";
// A refresh keeps a person's open details, typed fields and selected text.
(() => {
  const FIELDS = "input:not([type=hidden]), select, textarea";

  function isTyped(field) {
    if (field === document.activeElement) return true;
    if (field.matches("select")) return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.value !== field.defaultValue || Boolean(field.checked) !== Boolean(field.defaultChecked);
  }

  function isSelected(text) {
    const selection = document.getSelection();
    return Boolean(selection) && !selection.isCollapsed && selection.containsNode(text, true);
  }

  // Callbacks of idiomorph; false keeps the old node.
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeMorphed(old, fresh) {
      if (old.nodeType === Node.TEXT_NODE) return !isSelected(old);
      if (!(old instanceof Element)) return true;
      // The script has converted it to the viewer's zone.
      if (old.matches("time[datetime]:not([data-ago])") && old.dateTime === fresh.dateTime) return false;
      return !(old.matches(FIELDS) && isTyped(old));
    },
    beforeNodeRemoved(old) {
      if (!(old instanceof Element)) return true;
      return ![old, ...old.querySelectorAll(FIELDS)].some((one) => one.matches(FIELDS) && isTyped(one));
    },
    beforeAttributeUpdated: (name, old) => !(name === "open" && old.matches("details")),
  });
})();
