// What an engine needs from its worker: a voice, a clock, a pause and files. `web/worker/src/browser.rs` calls these.

// Messages that were posted meanwhile are heard before a pause ends: both are tasks of one queue.
const { port1, port2 } = new MessageChannel()
const waiting = []
port1.onmessage = () => waiting.shift()?.()

/** Reads a response to its end and tells how far it is. The length is unknown where the transfer is compressed. */
async function bytesOf(response, progress) {
  const encoded = response.headers.get('content-encoding')
  const total = encoded ? undefined : Number(response.headers.get('content-length')) || undefined
  const parts = []
  let done = 0
  for (const reader = response.body.getReader(); ;) {
    const { done: ended, value } = await reader.read()
    if (ended) break
    parts.push(value)
    done += value.length
    progress(done, total)
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

globalThis.host = {
  say: text => postMessage(text),
  now: () => performance.now(),
  pause: () => new Promise(resolve => { waiting.push(resolve); port2.postMessage(null) }),
  async fetch(path, progress) {
    const response = await fetch(new URL(path, import.meta.url))
    if (!response.ok) throw new Error(`the server answers ${response.status}`)
    return bytesOf(response, progress)
  },
  size: file => file.size ?? file.byteLength,
  read(file, at, buffer) {
    const end = Math.min(at + buffer.length, this.size(file))
    if (end <= at) return 0
    const bytes = file instanceof ArrayBuffer ? file.slice(at, end) : new FileReaderSync().readAsArrayBuffer(file.slice(at, end))
    buffer.set(new Uint8Array(bytes))
    return end - at
  },
}

/** Starts an engine and hands it every message, also those that come before it is up. */
export async function run(start, hear) {
  const early = []
  onmessage = event => early.push(event.data)
  await start()
  onmessage = ({ data: { text, files } }) => hear(text, files)
  for (const { text, files } of early) hear(text, files)
}
