// A form with POST is not sent again within PAUSE_MS, so that a double press creates no second schedule, token or
// provider.
const PAUSE_MS = 2000;
const lastSent = new WeakMap(); // time of the last submission by form

document.addEventListener("submit", (event) => {
  const { target: form, submitter, timeStamp } = event;
  // A field of the form may be named "method", so that the property would be this field.
  const method = submitter?.getAttribute("formmethod") ?? form.getAttribute("method");
  if (method !== "post" || event.defaultPrevented) return;
  if (timeStamp - lastSent.get(form) < PAUSE_MS) event.preventDefault();
  else lastSent.set(form, timeStamp);
});
