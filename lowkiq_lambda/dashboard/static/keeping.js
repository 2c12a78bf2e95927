"use strict";
// What a person is doing on a page outlives its refreshes: an open part, a field, a selected text.
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

  // In place of a function that does nothing; false leaves what there is.
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeMorphed(old, fresh) {
      if (old.nodeType === Node.TEXT_NODE) return !isSelected(old);
      if (!(old instanceof Element)) return true;
      // It is shown in the viewer's zone by now.
      if (old.matches("time[datetime]") && old.dateTime === fresh.dateTime) return false;
      return !(old.matches(FIELDS) && isTyped(old));
    },
    beforeNodeRemoved(old) {
      if (!(old instanceof Element)) return true;
      return ![old, ...old.querySelectorAll(FIELDS)].some((one) => one.matches(FIELDS) && isTyped(one));
    },
    beforeAttributeUpdated: (name, old) => !(name === "open" && old.matches("details")),
  });
})();
