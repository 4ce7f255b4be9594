// Copy buttons: the browser's clipboard where the page may use it, else the old command, else the text, selected, to be
// copied by hand. "Copied." is said only when it is true.
import { say } from "./messages.js";

export function startCopy() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy], button[data-copy-from], button[data-copy-address]");
    if (!button) return;
    event.preventDefault();
    button.setAttribute("data-busy", "");
    try {
      const text = await wanted(button);
      if (await put(text)) done(button, `Copied${text.length > 2000 ? ` ${text.length.toLocaleString("en-US")} characters` : ""}.`);
      else byHand(text);
    } catch {
      say("It could not be read; nothing was copied. Try again.", true);
    } finally {
      button.removeAttribute("data-busy");
      button.closest("details.menu")?.removeAttribute("open");
    }
  });
}

// Also at the button: where a dialog is open, the notice lies behind it.
function done(button, words) {
  say(words);
  button.dataset.copied = "";
  setTimeout(() => delete button.dataset.copied, 2000);
}

async function wanted(button) {
  if (button.dataset.copy !== undefined) return button.dataset.copy;
  if (button.dataset.copyAddress !== undefined) return location.origin + location.pathname;
  const answer = await fetch(button.dataset.copyFrom);
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  return answer.text();
}

async function put(text) {
  try {
    if (navigator.clipboard?.writeText) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // Not allowed, or the page is not in front: the old command may still do.
  }
  return byCommand(text);
}

// Within an open dialog everything outside is inert and cannot be selected, so the field has to lie in it. What it holds
// is only there to be selected: laying out millions of letters would hold up the page.
function byCommand(text) {
  const before = document.activeElement;
  const host = [...document.querySelectorAll("dialog[open]")].pop() || document.body;
  const field = Object.assign(document.createElement("textarea"), { className: "hidden", value: "-", readOnly: true });
  host.append(field);
  field.select();
  let copied = false;
  const told = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
    copied = true;
  };
  field.addEventListener("copy", told);
  const done = document.execCommand("copy");
  field.remove();
  before?.focus({ preventScroll: true });
  return done && copied;
}

function byHand(text) {
  const dialog = Object.assign(document.createElement("dialog"), { className: "dialog copy-dialog" });
  dialog.setAttribute("aria-labelledby", "copy-title");
  dialog.innerHTML = `<div class="form"><h2 id="copy-title">Copy it by hand</h2>
    <p>The browser did not let this page copy. The text is selected: press Ctrl+C, or ⌘C.</p>
    <textarea class="field" rows="8" readonly aria-label="The text"></textarea>
    <div class="form-end"><button class="button" type="button" data-close>Close</button></div></div>`;
  const field = dialog.querySelector("textarea");
  field.value = text;
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  field.focus();
  field.select();
}
