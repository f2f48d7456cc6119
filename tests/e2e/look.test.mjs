// How the page looks and reads: pictures of every tab, narrow and wide, light and dark; accessibility; a main thread that
// is never busy for long; grading through the page.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { artefacts, cwm, launchChromium, openPage, root, serve } from './harness.mjs'
import { busiest, ExplorePage } from './page.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const tabs = ['explore', 'grade', 'about']
let browser, server

before(async () => {
  server = await serve()
  browser = await launchChromium()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

async function open(options = {}, path = '') {
  const opened = await openPage(browser, server.url, { context: options, path })
  const explore = new ExplorePage(opened.page)
  await explore.started()
  await explore.answered()
  return { ...opened, explore }
}

async function show(page, tab) {
  await page.click(`[data-tab=${tab}]`)
  await page.waitForSelector(`#tab-${tab}:not([hidden])`)
  if (tab === 'grade') await page.waitForFunction(() => document.querySelector('.grade .run-row .primary')?.disabled === false, null, { timeout: 120_000 })
}

for (const [width, height] of [[1280, 860], [360, 740]]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`pictures and accessibility, ${width} pixels wide, ${colorScheme}`, async () => {
      const opened = await open({ viewport: { width, height }, colorScheme })
      const { page, context, watch } = opened
      for (const tab of tabs) {
        await show(page, tab)
        await page.screenshot({ path: join(artefacts, `${tab}-${width}-${colorScheme}.png`), fullPage: true })
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
        assert.ok(overflow <= 0, `${tab} is ${overflow} pixels too wide`)
        await page.evaluate(axe)
        const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }))
        const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
        const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target} ${failureSummary}`).join(' | ')}`)
        assert.deepEqual(told, [], tab)
      }
      assert.deepEqual([watch.errors, watch.violations, watch.foreign], [[], [], []])
      await context.close()
    })
  }
}

test('at 200 % zoom, and without motion', async () => {
  const { page, context } = await open({ viewport: { width: 640, height: 430 }, deviceScaleFactor: 2, reducedMotion: 'reduce' })
  for (const tab of tabs) {
    await show(page, tab)
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), tab)
  }
  await show(page, 'explore')
  await page.click('[data-go=previous]')
  assert.equal(await page.locator('piece.anim').count(), 0)
  await context.close()
})

test('the theme can be chosen and is kept', async () => {
  const { page, context } = await open({ colorScheme: 'light' })
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await paper()
  await page.click('#theme')
  assert.equal(await paper(), light)
  await page.click('#theme')
  assert.notEqual(await paper(), light)
  await page.reload()
  assert.notEqual(await paper(), light)
  await context.close()
})

test('grading: progress, report, export, the same numbers as the command line, worst games', async () => {
  const { page, context, watch, explore } = await open({ acceptDownloads: true })
  await show(page, 'grade')
  await page.check('input[value=classics]')
  await page.waitForFunction(() => document.querySelector('.command-line').textContent.includes('--human-sample'))
  const line = await page.textContent('.command-line')
  const before = watch.requests.length
  await page.click('.grade .run-row .primary')
  await page.waitForSelector('.running progress')
  await page.waitForSelector('.headline', { timeout: 240_000 })
  assert.deepEqual(watch.requests.slice(before).filter(url => !/^(blob|data):/.test(url)), [], 'nothing is fetched while grading')
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Report (JSON)')])
  const report = JSON.parse(readFileSync(await download.path(), 'utf8'))
  const expected = JSON.parse(await cwm(...line.split(' ').slice(1), '--format', 'json'))
  assert.equal(report.schema, expected.schema)
  assert.deepEqual(report.evaluations.map(({ tracker }) => tracker), expected.evaluations.map(({ tracker }) => tracker))
  for (const [ours, theirs] of report.evaluations.map((evaluation, at) => [evaluation, expected.evaluations[at]])) {
    for (const share of ['exact_state_accuracy', 'labelwise_accuracy', 'trajectory_exactness', 'labels_right', 'moves_sha256']) {
      assert.deepEqual(ours[share], theirs[share], `${ours.tracker}: ${share}`)
    }
  }
  assert.equal(await page.locator('.chart').count() >= 4, true)
  await page.locator('.chart-box summary').first().click()
  assert.ok(await page.locator('.chart-box table').first().isVisible())
  await page.locator('.chart [data-value]').first().hover({ force: true })
  assert.match(await page.textContent('.exact-value'), / %/)
  const [png] = await Promise.all([page.waitForEvent('download'), page.locator('.chart-box button', { hasText: 'PNG' }).first().click()])
  assert.deepEqual([...readFileSync(await png.path()).subarray(1, 4)], [...Buffer.from('PNG')])
  await page.screenshot({ path: join(artefacts, 'grade-results.png'), fullPage: true })
  await page.locator('.worst .list button').first().click()
  await page.waitForSelector('#tab-explore:not([hidden])')
  await explore.answered()
  assert.ok((await explore.ply()) > 0)
  assert.deepEqual([watch.errors, watch.violations, watch.foreign], [[], [], []])
  await context.close()
})

test('cancelling keeps what is graded and calls it partial', async () => {
  const { page, context } = await open()
  await show(page, 'grade')
  await page.check('#sizes input[value=full]')
  await page.click('.grade .run-row .primary')
  await page.waitForFunction(() => /[1-9]\d* (\/|games)/.test(document.querySelector('.running .numbers')?.textContent ?? ''), null, { timeout: 120_000 })
  await page.waitForFunction(() => /exact/.test(document.querySelector('.running tbody')?.textContent ?? ''))
  await page.click('text=Cancel and keep')
  await page.waitForFunction(() => document.querySelector('.results h2')?.textContent === 'Partial results', null, { timeout: 120_000 })
  await context.close()
})

test('files that are no checkpoints are named, with what to do', async () => {
  const { page, context } = await open({}, '#t=explore')
  const drop = (name, bytes) => page.setInputFiles('#file', { name, mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) })
  for (const [name, bytes, said] of [
    ['photo.jpg', [0xff, 0xd8, 0xff, 0, 1], /nothing that this page reads/],
    ['games.pgn.zst', [0x28, 0xb5, 0x2f, 0xfd], /compressed/],
    ['games.parquet', Buffer.from('PAR1'), /Parquet dataset/],
    ['config.json', Buffer.from('{}'), /not an evaluation report/],
  ]) {
    await drop(name, bytes)
    await page.waitForFunction(source => new RegExp(source).test(document.querySelector('#toasts').textContent), said.source)
  }
  await drop('game.pgn', Buffer.from('1. d4 d5 2. c4'))
  await page.waitForFunction(() => document.querySelector('.place').textContent.endsWith('of 3'))
  await drop('broken.safetensors', [9, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x22])
  await page.waitForFunction(() => document.querySelector('.grade .trouble:not([hidden])')?.textContent.length > 20, null, { timeout: 60_000 })
  await page.screenshot({ path: join(artefacts, 'grade-broken-file.png') })
  await drop('latest.pt', Buffer.from('PK\x03\x04 and so on'))
  await page.waitForFunction(() => document.querySelector('.grade .trouble').textContent.includes('CKPT-PT-'))
  await drop('eval.json', readFileSync(join(root, 'models/checkpoints/transformer-d128/eval.json')))
  await page.waitForSelector('.headline')
  await context.close()
})

test('checkpoints and games can be dropped, and what was graded leaves in every form', async () => {
  const { page, context } = await open()
  // A drop as the browser fires it: files in a DataTransfer, over whatever lies under the pointer.
  const drop = async (name, bytes) => {
    const files = await page.evaluateHandle(([name, base64]) => {
      const transfer = new DataTransfer()
      transfer.items.add(new File([Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))], name))
      return transfer
    }, [name, Buffer.from(bytes).toString('base64')])
    for (const type of ['dragenter', 'dragover']) await page.dispatchEvent('#board', type, { dataTransfer: files })
    assert.ok(await page.locator('#drop-hint').isVisible(), 'the page says that it takes the file')
    await page.dispatchEvent('#board', 'drop', { dataTransfer: files })
    assert.ok(await page.locator('#drop-hint').isHidden())
  }
  const facts = () => page.textContent('.grade .facts')
  await drop('dropped.safetensors', readFileSync(join(root, 'models/checkpoints/transition/model.safetensors')))
  await page.waitForFunction(() => /93,354/.test(document.querySelector('.grade .facts')?.textContent ?? ''), null, { timeout: 60_000 })
  assert.match(await facts(), /transition/)
  await drop('broken.safetensors', [9, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x22])
  await page.waitForFunction(() => document.querySelector('.grade .trouble:not([hidden])')?.textContent.length > 20, null, { timeout: 60_000 })

  await drop('eval.json', readFileSync(join(root, 'models/checkpoints/transformer-d128/eval.json')))
  await page.waitForSelector('.headline')
  for (const [button, head] of [['Prefix bins (CSV)', /^[a-z_]+(,[a-z_ -]+)+\n.*transformer-d128/], ['Summary (TSV)', /^model\t.*\n.*\t/]]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`text=${button}`)])
    assert.match(readFileSync(await download.path(), 'utf8'), head)
  }
  const [svg] = await Promise.all([page.waitForEvent('download'), page.locator('.chart-box button', { hasText: 'SVG' }).first().click()])
  assert.match(readFileSync(await svg.path(), 'utf8'), /^<svg[^]*<\/svg>\s*$/)
  const rows = () => page.locator('.headline tr').count()
  const few = await rows()
  await page.check('text=show every row of the paper')
  await page.waitForFunction(few => document.querySelectorAll('.headline tr').length > few + 10, few)
  await context.close()
})

test('the main thread is never busy for 50 ms', async () => {
  const { page, context, explore } = await open()
  const traced = async work => {
    await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata'] })
    await work()
    return busiest((await browser.stopTracing()).toString())
  }
  // A long game, streamed; then grading.
  const playing = await traced(async () => {
    await page.fill('#seed', '3')
    await page.click('#random button')
    await explore.answered()
    for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowRight')
  })
  const grading = await traced(async () => {
    await show(page, 'grade')
    await page.click('.grade .run-row .primary')
    await page.waitForSelector('.headline', { timeout: 240_000 })
  })
  console.log(`busiest tasks, CPU ms: playing ${playing.slice(0, 3).join(', ')}; grading ${grading.slice(0, 3).join(', ')}`)
  assert.ok(playing.length > 10 && grading.length > 10, 'the trace holds tasks')
  assert.ok(playing[0] < 50, `${playing[0]} ms of computing in one task while playing`)
  assert.ok(grading[0] < 50, `${grading[0]} ms of computing in one task while grading`)
  await context.close()
})
