// Forms and buttons marked data-verb are sent without leaving the page. Without scripts they are plain forms.
import { say } from "./messages.js";

export function startVerbs() {
  if (!document.querySelector("#run, #inbox")) return;
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    const verb = button?.dataset.verb || event.target.dataset.verb;
    if (!verb) return;
    event.preventDefault();
    send(event.target, button, verb);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    if (event.target.id === "steer-note" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
    // Enter in an answer's field means that answer, not the first button of the shared form.
    const own = document.getElementById(event.target.dataset?.enter || "-") || document.querySelector(`[data-needs="${CSS.escape(event.target.id || "-")}"]`);
    if (own) {
      event.preventDefault();
      own.click();
    }
  });
}

async function send(form, button, verb) {
  const target = button?.getAttribute("formaction") || form.getAttribute("action");
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) body.append(name, value);
  if (button?.name) body.append(button.name, button.value);
  button?.setAttribute("data-busy", "");
  try {
    const answer = await fetch(target, { method: "POST", body, headers: { Accept: "application/json" }, credentials: "same-origin" });
    if (answer.redirected || !(answer.headers.get("content-type") || "").includes("json")) {
      say("Your session may have ended. Reload the page and sign in again.", true);
      return;
    }
    const said = await answer.json();
    if (said.error) say(said.error.message, true);
    else done(form, button, verb, said);
  } catch {
    say("The server could not be reached. Nothing was sent; try again.", true);
  } finally {
    button?.removeAttribute("data-busy");
  }
}

function done(form, button, verb, said) {
  if (verb === "steer") form.reset();
  if (verb === "interrupt") form.closest("dialog")?.close();
  if (button?.dataset.needs) document.getElementById(button.dataset.needs).value = "";
  button?.closest("details.menu")?.removeAttribute("open");
  say(said.message);
  document.dispatchEvent(new CustomEvent("acted", { detail: { verb } }));
}
