// The page as a site: its rules, below a path, without a network, after a new build, and how large it is.
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { dist, launchChromium, openEngine, openPage, root, said, serve, slack } from './harness.mjs'

let browser
before(async () => { browser = await launchChromium() })
after(async () => { await browser?.close() })

/** The largest a part may be, in bytes of brotli. */
const budgets = { 'app_bg.wasm': 400_000, 'worker_bg.wasm': 2_500_000, 'gpu_bg.wasm': 4_000_000 }

test('every part keeps to its budget', t => {
  const sizes = JSON.parse(readFileSync(join(dist, 'sizes.json'), 'utf8'))
  for (const [path, most] of Object.entries(budgets)) {
    const { raw, served, brotli } = sizes.find(size => size.path === path)
    t.diagnostic(`${path}: compiled ${raw}, wasm-opt ${served}, brotli ${brotli} of ${most}`)
    assert.ok(brotli <= most, `${path} has ${brotli} bytes of brotli, ${most} at most`)
  }
  const [first] = JSON.parse(readFileSync(join(dist, 'models', 'index.json'), 'utf8'))
  assert.ok(first.bytes <= 2_000_000, `the default checkpoint has ${first.bytes} bytes`)
})

test('the page carries the rules that the server sends', async () => {
  const server = await serve()
  try {
    const answer = await fetch(server.url)
    const sent = answer.headers.get('content-security-policy').replace("; frame-ancestors 'none'", '')
    const [, written] = /http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(await answer.text()) ?? []
    assert.equal(written, sent)
    const wasm = await fetch(new URL('worker_bg.wasm', server.url), { headers: { 'accept-encoding': 'br' } })
    assert.equal(wasm.headers.get('content-type'), 'application/wasm')
    assert.equal(wasm.headers.get('content-encoding'), 'br')
    const again = await fetch(new URL('worker_bg.wasm', server.url), { headers: { 'accept-encoding': 'br', 'if-none-match': wasm.headers.get('etag') } })
    assert.equal(again.status, 304)
  } finally {
    await server.stop()
  }
})

test('below a path, everything is found', async () => {
  const server = await serve('--public-url', '/some/where/')
  try {
    assert.ok(server.url.endsWith('/some/where/'))
    const { page, watch, context } = await openPage(browser, server.url)
    await page.waitForSelector('#board cg-board piece')
    assert.deepEqual([watch.errors, watch.violations, watch.foreign], [[], [], []])
    assert.ok(watch.requests.every(url => url.startsWith(server.url) || /^(data|blob):/.test(url)), watch.requests.join('\n'))
    await context.close()
    const engine = await openEngine(browser, server.url)
    assert.ok(said(await engine.ask({ ask: 'open', name: 'transformer-d128', source: { from: 'shipped' } }), 'opened'))
    await engine.context.close()
  } finally {
    await server.stop()
  }
})

test('nothing runs on the main thread for long, and nothing leaves the origin, while a checkpoint is opened and grades', async t => {
  const server = await serve()
  try {
    const engine = await openEngine(browser, server.url)
    await engine.page.evaluate(() => {
      globalThis.longTasks = []
      new PerformanceObserver(list => longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
    })
    await engine.ask({ ask: 'open', name: 'transformer-d128', source: { from: 'shipped' } })
    const sets = [{ set: 'random', policy: 'uniform', seed: 2, games: 30, min_fullmoves: 10 }]
    assert.ok(said(await engine.ask({ ask: 'grade', model: true, baselines: ['oracle'], sets, limit: null, worst: 5 }), 'graded').complete)
    const long = await engine.page.evaluate(() => longTasks)
    t.diagnostic(`long tasks: ${JSON.stringify(long)}`)
    assert.ok(long.every(duration => duration < 50 * slack), JSON.stringify(long))
    assert.deepEqual(engine.watch.foreign, [])
    await engine.context.close()
  } finally {
    await server.stop()
  }
})

test('after one visit the page works without a network, and offers a new build', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'cwm-site-'))
  cpSync(dist, scratch, { recursive: true })
  let server = await serve('--dist', scratch)
  try {
    const { page, context, watch } = await openPage(browser, server.url)
    await page.waitForSelector('#board cg-board piece')
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}))
    await page.waitForFunction(() => Boolean(navigator.serviceWorker.controller))
    await context.setOffline(true)
    const port = new URL(server.url).port
    await server.stop()
    await page.reload()
    await page.waitForSelector('#board cg-board piece')
    // The default checkpoint answers too.
    await page.waitForFunction(() => document.querySelector('.model .summary')?.textContent.includes('states exact'), null, { timeout: 60_000 })
    assert.deepEqual(watch.foreign, [])
    // A new build: the page says so, and changes when it is told to.
    const worker = readFileSync(join(scratch, 'sw.js'), 'utf8')
    writeFileSync(join(scratch, 'sw.js'), worker.replace(/const version = "[^"]*"/, 'const version = "another"'))
    rmSync(join(scratch, 'sw.js.br'), { force: true })
    const index = readFileSync(join(scratch, 'index.html'), 'utf8')
    writeFileSync(join(scratch, 'index.html'), index.replace('<title>', '<title>New: '))
    rmSync(join(scratch, 'index.html.br'), { force: true })
    server = await serve('--dist', scratch, '--port', port)
    await context.setOffline(false)
    await page.evaluate(() => navigator.serviceWorker.getRegistration().then(registration => registration.update()))
    const button = page.getByRole('button', { name: 'Reload to update' })
    await button.waitFor({ timeout: 30_000 })
    assert.ok(!(await page.title()).startsWith('New'))
    await Promise.all([page.waitForEvent('load'), button.click()])
    await page.waitForFunction(() => document.title.startsWith('New: '))
    await context.close()
  } finally {
    await server.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
})

test('the address can force the CPU', async () => {
  const server = await serve()
  try {
    const engine = await openEngine(browser, server.url, { query: '?backend=cpu', options: { gpu: true } })
    const [ready] = await engine.seen()
    assert.equal(ready.backend.kind, 'cpu')
    assert.match(ready.backend.why, /backend=cpu/)
    await engine.context.close()
  } finally {
    await server.stop()
  }
})

test('the licence of every part that is not ours is told', () => {
  const page = readFileSync(join(root, 'web', 'index.html'), 'utf8')
  assert.match(page, /chessground/i)
})
