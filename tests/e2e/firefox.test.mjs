// The page in Firefox, spoken to by WebDriver BiDi: its networks run on the CPU there.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import puppeteer from 'puppeteer-core'
import { cwm, firefoxPath, serve } from './harness.mjs'
import { numbersOf } from './reports.mjs'

let server, browser, page
const errors = []

before(async () => {
  if (!firefoxPath) throw new Error('no Firefox: install it (Debian: apt-get install firefox-esr) or name one in FIREFOX')
  server = await serve()
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: firefoxPath, headless: true })
  page = await browser.newPage()
  page.on('pageerror', error => errors.push(String(error)))
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

test('the board is there, and the default checkpoint answers', async () => {
  await page.goto(server.url)
  await page.waitForSelector('#board cg-board piece', { timeout: 60_000 })
  await page.waitForFunction(() => document.querySelector('.model .summary')?.textContent.includes('states exact'), { timeout: 120_000 })
  assert.match(await page.$eval('#badge', badge => badge.textContent), /CPU/)
})

test('the engine grades as the command line does', async t => {
  await page.goto(new URL('sizes.json', server.url).href)
  const graded = await page.evaluate(async () => {
    const { Engine } = await import(new URL('./engine.js', location.href).href)
    return new Promise((resolve, reject) => {
      const engine = new Engine(text => {
        const reply = JSON.parse(text)
        const post = (id, ask) => engine.post(JSON.stringify({ id, ...ask }))
        if (reply.say === 'ready') post(1, { ask: 'open', name: 'transformer-d128', source: { from: 'shipped' } })
        if (reply.say === 'opened') {
          const sets = [{ set: 'random', policy: 'uniform', seed: 3, games: 10, min_fullmoves: 10 }]
          post(2, { ask: 'grade', model: true, baselines: [], sets, limit: null, worst: 5 })
        }
        if (reply.say === 'graded') resolve(reply)
        if (reply.say === 'failed') reject(new Error(text))
      })
      engine.start()
    })
  })
  const native = JSON.parse(await cwm('evaluate', 'transformer-d128', '--random', '10', '--seed', '3', '--format', 'json', '--progress', 'none'))
  assert.deepEqual(numbersOf(graded.report), numbersOf(native))
  for (const { what, steps, millis } of graded.timings) {
    if (steps > 0) t.diagnostic(`${what}: ${steps} steps, ${(steps / millis * 1000).toFixed(0)} steps/s`)
  }
})

test('nothing was thrown', () => {
  assert.deepEqual(errors, [])
})
