// Light, dark, or as the system says, without a reload. The cookie is the choice: the server writes data-theme from it.
const root = document.documentElement;
const form = document.querySelector("[data-theme-form]");
const order = ["system", "light", "dark"];

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  const theme = button.value;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
  button.textContent = `Theme: ${theme}`;
  button.value = order[(order.indexOf(theme) + 1) % order.length];
  document.dispatchEvent(new CustomEvent("theme", { detail: theme }));
});
