// Browsers refuse workers on pages that are opened from the disk. The site's search is one worker:
// here it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const base = new URL(url, document.baseURI)
      this.onmessage = this.onerror = null
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const inside = frame.contentWindow
      this.frame = frame
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inside.importScripts = (...urls) =>
        urls.reduce(
          (before, one) =>
            before.then(
              () =>
                new Promise((done, failed) => {
                  const script = inside.document.createElement("script")
                  script.src = new URL(one, base)
                  script.onload = done
                  script.onerror = failed
                  inside.document.body.appendChild(script)
                }),
            ),
          Promise.resolve(),
        )
      this.ready = inside.importScripts(base)
    }
    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
      )
    }
    terminate() {
      this.frame.remove()
    }
  }
}
