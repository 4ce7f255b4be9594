// Answers as they were written, or laid out: both are on the page already, so the choice only shows the other one.
const YEAR_S = 31_536_000;

export function startProse(root) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-prose]");
    if (!button) return;
    event.preventDefault();
    const answer = button.closest(".answer");
    const at = answer.getBoundingClientRect().top;
    document.documentElement.dataset.prose = button.value;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `prose=${button.value}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax${secure}`;
    // The answer that was pressed stays where it is, and so does the cursor of who presses keys.
    const middle = root.querySelector(".middle");
    const page = getComputedStyle(middle).overflowY === "auto" ? middle : document.scrollingElement;
    page.scrollTop += answer.getBoundingClientRect().top - at;
    for (const other of answer.querySelectorAll("[data-prose]")) if (other !== button) other.focus({ preventScroll: true });
  });
}
