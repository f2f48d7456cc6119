// What every browser test stands on: a server of the built page, browsers, and pages that are watched for what must not
// happen (errors, violations of the page's rules, requests to elsewhere).
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target')
export const cwmBinary = process.env.CWM_BIN ?? join(target, 'release', 'cwm')
export const dist = process.env.CWM_DIST ?? join(root, 'web', 'dist')
export const artefacts = join(root, 'tests', 'e2e', 'artefacts')
mkdirSync(artefacts, { recursive: true })

/** What `cwm ARGUMENTS` prints. */
export async function cwm(...args) {
  const { stdout } = await promisify(execFile)(cwmBinary, args, { cwd: root, maxBuffer: 1 << 28 })
  return stdout
}

/** Serves the page on a free port; `stop` ends the server. */
export async function serve(...args) {
  const process_ = spawn(cwmBinary, ['serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...(args.includes('--dist') ? [] : ['--dist', dist]), ...args], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: process_.stdout })
  const [url] = await Promise.race([
    once(lines, 'line'),
    once(process_, 'exit').then(([code]) => { throw new Error(`cwm serve ended with ${code}`) }),
  ])
  const stop = async () => {
    process_.kill()
    if (process_.exitCode === null && process_.signalCode === null) await once(process_, 'exit')
  }
  return { url, stop }
}

/** Where Debian and others put Chromium; CHROMIUM names another one. */
export const chromiumPath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
  .find(path => path && existsSync(path))
export const firefoxPath = [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox'].find(path => path && existsSync(path))

/** A headless Chromium; with `gpu` it has WebGPU on a software adapter, without it has none. */
export function launchChromium({ gpu = false } = {}) {
  if (!chromiumPath) throw new Error('no Chromium: install it (Debian: apt-get install chromium) or name one in CHROMIUM')
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
      '--disable-sync', ...(gpu ? ['--enable-unsafe-webgpu'] : ['--disable-features=WebGPU']),
    ],
  })
}

/** A watched page in a context of its own: `watch` collects what must stay empty. */
export async function openPage(browser, url, { context: options = {}, within, path = '', wait = 'load' } = {}) {
  const context = within ?? await browser.newContext(options)
  const page = await context.newPage()
  const watch = { errors: [], violations: [], foreign: [], requests: [] }
  const origin = new URL(url).origin
  page.on('pageerror', error => watch.errors.push(String(error)))
  page.on('console', message => {
    const text = message.text()
    if (/Content Security Policy/i.test(text)) watch.violations.push(text)
    // Browsers ask for an icon wherever a document names none.
    else if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) watch.errors.push(text)
  })
  context.on('request', request => {
    watch.requests.push(request.url())
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin) watch.foreign.push(request.url())
  })
  await page.goto(new URL(path, url).href, { waitUntil: wait })
  return { context, page, watch }
}

/**
 * The engine without the page around it: an empty document of the page's origin that speaks `web/protocol` itself.
 * `ask` posts a request and gives all of its replies; `seen` gives what came with id 0.
 */
export async function openEngine(browser, url, { query = '', options = {}, within } = {}) {
  const opened = await openPage(browser, url, { path: `sizes.json${query}`, within })
  const { page } = opened
  await page.evaluate(async options => {
    const { Engine } = await import(new URL('./engine.js', location.href).href)
    const bench = { replies: new Map(), waiting: new Map(), next: 1 }
    bench.hear = text => {
      const reply = JSON.parse(text)
      if (!bench.replies.has(reply.id)) bench.replies.set(reply.id, [])
      bench.replies.get(reply.id).push({ ...reply, at: performance.now() })
      for (const check of [...bench.waiting.values()]) check()
    }
    bench.last = id => (bench.replies.get(id) ?? []).find(({ say }) => !['phase', 'step', 'grading', 'notice'].includes(say))
    bench.until = test => new Promise(resolve => {
      const key = Symbol('waiting')
      const check = () => { const found = test(); if (found) { bench.waiting.delete(key); resolve(found) } }
      bench.waiting.set(key, check)
      check()
    })
    bench.post = (ask, files = []) => {
      const id = bench.next++
      bench.engine.post(JSON.stringify({ id, ...ask }), files)
      return id
    }
    bench.engine = new Engine(bench.hear, options)
    bench.engine.start()
    globalThis.bench = bench
    await bench.until(() => bench.replies.get(0)?.find(({ say }) => say === 'ready'))
  }, options)
  return {
    ...opened,
    /** All replies to a request; `files` are `{ path }` (a file of this machine) or `{ text }`. */
    async ask(ask, files = []) {
      const id = await this.post(ask, files)
      return this.replies(id)
    },
    async post(ask, files = []) {
      const carried = files.map(file => ({ name: file.name ?? 'file', base64: (file.path ? readFileSync(file.path) : Buffer.from(file.bytes ?? file.text)).toString('base64') }))
      return page.evaluate(({ ask, carried }) => {
        const files = carried.map(({ name, base64 }) => new File([Uint8Array.from(atob(base64), c => c.charCodeAt(0))], name))
        return bench.post(ask, files)
      }, { ask, carried })
    },
    replies: id => page.evaluate(async id => { await bench.until(() => bench.last(id)); return bench.replies.get(id) }, id),
    seen: () => page.evaluate(() => bench.replies.get(0) ?? []),
    until: say => page.evaluate(say => bench.until(() => (bench.replies.get(0) ?? []).find(reply => reply.say === say)), say),
  }
}

/** The first reply of a kind. */
export const said = (replies, kind) => replies.find(({ say }) => say === kind)

/** How much slower than a quiet machine this one may be: limits of time are multiplied by it. */
export const slack = Number(process.env.CWM_E2E_SLACK ?? 10)
