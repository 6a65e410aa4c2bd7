// Changes the theme (light, dark, or that of the system) without a reload. The server reads the choice from the cookie
// and writes it into data-theme.
const root = document.documentElement;
const form = document.querySelector("[data-theme-form]");
const THEMES = ["system", "light", "dark"];

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  const theme = button.value;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
  button.textContent = `Theme: ${theme}`;
  button.value = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
});
