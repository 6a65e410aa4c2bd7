// Changes the theme (light, dark, or that of the system) without a reload. The server reads the choice from the cookie
// and writes it into data-theme.
const root = document.documentElement;
const form = document.querySelector("[data-theme-form]");

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const theme = event.submitter.value;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === theme));
  document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
});
