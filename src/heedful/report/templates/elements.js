// Everything from the data enters the page through textContent or a CSS number, never as markup.

/* what the interactive parts of a page share */
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function option(value, text) {
  const made = element("option", "", text);
  made.value = value;
  return made;
}

const number = (value, digits) => value === null ? "–" : value.toFixed(digits).replace("-", "−");

function widgetData(name) {
  const script = byId(`${name}-data`);
  return script && JSON.parse(script.textContent);
}
