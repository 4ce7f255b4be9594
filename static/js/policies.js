// The editor of a policy: the cursor goes to the line in question, and leaving with unsaved text asks first.
export function startPolicies() {
  const form = document.querySelector("[data-policy-form]");
  if (!form) return;
  const text = form.elements.text;
  const line = Number(text.dataset.line);
  if (line) goTo(text, line);
  const before = text.value;
  let sending = false;
  form.addEventListener("submit", () => (sending = true));
  addEventListener("beforeunload", (event) => {
    if (!sending && (form.hasAttribute("data-unsaved") || text.value !== before)) event.preventDefault();
  });
  // Back from the next page: the form may be sent again.
  addEventListener("pageshow", () => (sending = false));
}

function goTo(text, line) {
  const rows = text.value.split("\n");
  const start = rows.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  text.focus({ preventScroll: true });
  text.setSelectionRange(start, start + (rows[line - 1] || "").length);
  const height = parseFloat(getComputedStyle(text).lineHeight) || 18;
  text.scrollTop = Math.max(0, (line - 4) * height);
}
