// Carries messages between the page and its engines. What they mean is said in web/protocol; nothing here reads them
// further than it must to choose between CPU and GPU and to survive a crash.

/** Grading that the CPU is done with sooner is not worth opening the GPU for, in seconds. */
const gpuPaysAfterSecs = 20
/** Steps of a game, roughly: of human play, of random play. */
const humanSteps = 90, randomSteps = 330

const head = text => {
  const found = /^\{"id":(\d+),"say":"(\w+)"/.exec(text)
  return found ? { id: Number(found[1]), say: found[2] } : { id: 0, say: '' }
}
const passing = new Set(['phase', 'step', 'grading', 'notice'])
const reply = (id, say, rest) => JSON.stringify({ id, say, ...rest })
const crash = message => ({ code: 'PAGE-PANIC', message, hint: 'restart the engine; the game on screen stays' })

/** What the user wants of the GPU: `cpu`, `webgpu` or `auto`, by `?backend=` in the page's address. */
export function wantedBackend(search = globalThis.location?.search ?? '') {
  const wanted = new URLSearchParams(search).get('backend')
  return wanted === 'cpu' || wanted === 'webgpu' ? wanted : 'auto'
}

/** Looks for a GPU without opening it: `{ adapter, usable, why }`. */
export async function lookForGpu(wanted = wantedBackend()) {
  if (wanted === 'cpu') return { adapter: null, usable: false, why: 'chosen by ?backend=cpu in the address' }
  if (!globalThis.isSecureContext) return { adapter: null, usable: false, why: 'WebGPU needs https or localhost' }
  if (!navigator.gpu) return { adapter: null, usable: false, why: 'this browser has no WebGPU: a newer one may' }
  let found
  try {
    found = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' })
  } catch (error) {
    return { adapter: null, usable: false, why: `the browser refuses its GPU: ${error.message}` }
  }
  if (!found) return { adapter: null, usable: false, why: 'the browser offers no GPU: is hardware acceleration on?' }
  const { vendor = '', architecture = '', description = '', isFallbackAdapter = false } = found.info ?? {}
  const adapter = { vendor, architecture, description }
  const software = isFallbackAdapter || /swiftshader|llvmpipe|lavapipe|software/i.test(`${architecture} ${description}`)
  if (software && wanted !== 'webgpu') return { adapter, usable: false, why: 'the only GPU is a simulated one, slower than the CPU' }
  return { adapter, usable: true, why: null }
}

/** An engine in a worker; with `gpu`, gradings that are long enough run on the GPU, in a worker of its own. */
export class Engine {
  /**
   * @param {(reply: string) => void} onReply hears every reply, a JSON text of `cwm_protocol::Reply`
   * @param {{ gpu?: boolean, wanted?: string }} options
   */
  constructor(onReply, { gpu = false, wanted = wantedBackend() } = {}) {
    this.onReply = onReply
    this.wanted = wanted
    this.mayUseGpu = gpu
    this.worker = null
    this.gpu = null
    this.opened = null
    this.gpuFailed = null
    this.tasks = new Map()
  }

  /** Starts the worker, or starts it anew after a crash. Its first reply is `ready`. */
  start() {
    this.stop()
    this.found = lookForGpu(this.wanted)
    this.worker = this.workerOf('engine-worker.js', 'engine', text => this.hearCpu(text), message => this.onReply(reply(0, 'failed', { fault: crash(message) })))
  }

  /** Ends everything. */
  stop() {
    this.worker?.terminate()
    this.gpu?.terminate()
    this.worker = this.gpu = this.opened = null
    this.tasks.clear()
  }

  /** Posts a request, a JSON text of `cwm_protocol::Request`, and its files (`File`, `Blob` or `ArrayBuffer`). */
  post(text, files = []) {
    const request = this.mayUseGpu ? JSON.parse(text) : {}
    if (request.ask === 'open') {
      this.opening = { id: request.id, text, files }
    } else if (request.ask === 'grade') {
      this.grade(request, text, files)
      return
    } else if (request.ask === 'cancel' && this.tasks.has(request.request)) {
      const task = this.tasks.get(request.request)
      task.cancelled = true
      if (task.worker) task.worker.postMessage({ text, files: [] })
      else this.onReply(reply(request.id, 'cancelled', {}))
      return
    }
    this.worker.postMessage({ text, files })
  }

  workerOf(script, name, hear, failed) {
    const worker = new Worker(new URL(`./${script}`, import.meta.url), { type: 'module', name })
    worker.onmessage = event => hear(event.data)
    worker.onerror = event => {
      event.preventDefault()
      failed(event.message || 'the engine could not be loaded')
    }
    return worker
  }

  async hearCpu(text) {
    const { id, say } = head(text)
    if (id === 0 && say === 'ready') {
      const ready = JSON.parse(text)
      const { adapter, usable, why } = await this.found
      ready.backend = { kind: 'cpu', adapter, why: usable ? 'the GPU takes over long gradings' : why }
      this.onReply(JSON.stringify(ready))
      return
    }
    if (this.opening?.id === id && !passing.has(say)) {
      if (say === 'opened') {
        // Another checkpoint: the GPU's worker has none of it.
        this.opened = { ...this.opening, facts: JSON.parse(text).facts }
        this.gpu?.terminate()
        this.gpu = null
      }
      this.opening = null
    }
    if (!passing.has(say)) this.tasks.delete(id)
    // Nobody asked for what is answered with id 0, except to hear of trouble.
    if (id !== 0 || say === 'failed' || say === 'notice') this.onReply(text)
  }

  /** Sends a grading where it is done soonest; back to the CPU, from its start, if the GPU's worker crashes. */
  async grade(request, text, files) {
    const task = { worker: null, cancelled: false }
    this.tasks.set(request.id, task)
    const onCpu = () => {
      task.worker = this.worker
      this.worker.postMessage({ text, files })
      if (task.cancelled) this.worker.postMessage({ text: JSON.stringify({ id: 0, ask: 'cancel', request: request.id }), files: [] })
    }
    if (!await this.gpuPays(request, files)) return onCpu()
    const lost = fault => {
      this.gpu?.terminate()
      this.gpu = null
      this.gpuFailed = fault.message
      const backend = { kind: 'cpu', adapter: null, why: fault.message }
      this.onReply(reply(0, 'notice', { fault, backend }))
      if (this.tasks.has(request.id)) onCpu()
    }
    const hear = text => {
      const { id, say } = head(text)
      if (id === 0 && say === 'failed') {
        const { fault } = JSON.parse(text)
        lost(fault.code === 'PAGE-PANIC' ? { ...fault, code: 'GPU-SHADER', hint: 'the CPU goes on; nothing is lost' } : fault)
      } else if (id === 0 && say === 'notice') {
        // The worker goes on, on the CPU, with what it has.
        this.gpuFailed = JSON.parse(text).fault.message
        this.onReply(text)
      } else if (id === 0 || say === 'phase') {
        this.hearGpu(text, request.id)
      } else {
        if (!passing.has(say)) {
          this.tasks.delete(id)
          // What failed there may work here.
          if (say === 'failed' && /DEVICE|GPU/.test(JSON.parse(text).fault.code)) {
            this.tasks.set(id, task)
            return lost(JSON.parse(text).fault)
          }
          if (this.gpuFailed) { this.gpu?.terminate(); this.gpu = null }
        }
        this.onReply(text)
      }
    }
    try {
      const gpu = await this.openGpu(request.id, hear)
      if (!gpu) return
      task.worker = gpu
      gpu.postMessage({ text, files })
      if (task.cancelled) gpu.postMessage({ text: JSON.stringify({ id: 0, ask: 'cancel', request: request.id }), files: [] })
    } catch (fault) {
      lost(fault)
    }
  }

  /** Whether a grading is long enough, and the GPU fit, for it. */
  async gpuPays({ model, sets, limit }, files) {
    const { usable } = await this.found
    if (!model || !usable || this.gpuFailed || !this.opened || this.opened.facts.family === 'transition') return false
    if (this.wanted === 'webgpu') return true
    const least = games => Math.min(games, limit ?? games)
    const steps = sets.reduce((sum, set, i) => sum + (set.set === 'random' ? least(set.games) * randomSteps
      : set.set === 'pgn' ? least((files[i]?.size ?? 0) / 1000) * humanSteps : least(50) * humanSteps), 0)
    return steps / this.opened.facts.steps_per_sec > gpuPaysAfterSecs
  }

  /** The GPU's worker with the open checkpoint in it; phases are told as those of request `id`. */
  openGpu(id, hear) {
    return new Promise((resolve, reject) => {
      if (this.gpu) {
        this.gpu.onmessage = event => hear(event.data)
        return resolve(this.gpu)
      }
      this.onReply(reply(id, 'phase', { phase: 'opening_gpu', done: 0, total: null }))
      const opening = this.opened
      let up = false
      const gpu = this.workerOf('gpu-worker.js', 'gpu engine', text => {
        if (up) return hear(text)
        const { id: to, say } = head(text)
        const message = JSON.parse(text)
        if (to === 0 && say === 'failed') reject(message.fault)
        else if (to === 0 && say === 'notice') { this.gpuFailed = message.fault.message; reject(message.fault) }
        else if (to === 0 && say === 'ready') {
          this.version = message.version
          gpu.postMessage({ text: opening.text, files: opening.files })
        } else if (say === 'phase') this.onReply(reply(id, 'phase', { phase: message.phase, done: message.done, total: message.total }))
        else if (say === 'failed') reject(message.fault)
        else if (say === 'opened') {
          up = true
          gpu.onmessage = event => hear(event.data)
          this.found.then(({ adapter }) => {
            this.onReply(reply(0, 'ready', { backend: { kind: 'webgpu', adapter, why: null }, version: this.version }))
            resolve(gpu)
          })
        }
      }, message => {
        const fault = { code: 'GPU-SHADER', message, hint: 'the CPU goes on; nothing is lost' }
        if (up) hear(reply(0, 'failed', { fault }))
        else reject(fault)
      })
      this.gpu = gpu
    })
  }

  hearGpu(text, id) {
    const message = JSON.parse(text)
    if (message.say === 'phase') this.onReply(reply(id, 'phase', { phase: message.phase, done: message.done, total: message.total }))
  }
}
