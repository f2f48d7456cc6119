// Carries messages between the app and the worker. What they mean is said in web/protocol; nothing here reads them
// further than it must to keep the worker alive.

/** The page's one engine, whatever workers it needs. Texts in, texts out. */
export class Engine {
  /** @param {(reply: string) => void} onReply hears every reply, a JSON text of `cwm_protocol::Reply` */
  constructor(onReply) {
    this.onReply = onReply
    this.worker = null
  }

  /** Starts the worker, or starts it anew after a crash. Its first reply is `ready`. */
  start() {
    this.worker?.terminate()
    this.worker = new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module', name: 'engine' })
    this.worker.onmessage = event => this.onReply(event.data)
  }

  /** Posts a request, a JSON text of `cwm_protocol::Request`, and its files (`File`, `Blob` or `ArrayBuffer`). */
  post(text, files = []) {
    this.worker.postMessage({ text, files }, files.filter(file => file instanceof ArrayBuffer))
  }
}
