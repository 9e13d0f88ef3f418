// A page in a frame of a notebook. It asks the kernel through this widget: what it posts is sent on, and so is the answer.
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.style = `width: 100%; height: ${model.get("height")}px; border: 0`;
  frame.srcdoc = model.get("page");
  const ask = (event) => event.source === frame.contentWindow && model.send(event.data);
  const answer = (content) => frame.contentWindow?.postMessage(content, "*"); // a frame in a sandbox has no origin
  addEventListener("message", ask);
  model.on("msg:custom", answer);
  el.append(frame);
  return () => {
    removeEventListener("message", ask);
    model.off("msg:custom", answer);
  };
}

export default { render };
