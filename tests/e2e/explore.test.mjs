// The Explore page in a real browser: the board and everything around it.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cwm, launchChromium, openPage, serve } from './harness.mjs'
import { ExplorePage } from './page.mjs'

let browser, server

before(async () => {
  server = await serve()
  browser = await launchChromium()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

/** An Explore page; `ready` waits until its models have answered. */
async function explore({ path = '', context = {}, ready = true } = {}) {
  const opened = await openPage(browser, server.url, { path, context: { viewport: { width: 1280, height: 1100 }, permissions: ['clipboard-read', 'clipboard-write'], ...context } })
  const page = new ExplorePage(opened.page)
  await page.started()
  if (ready) await page.answered()
  return { ...opened, explore: page }
}

/** Closes a page that must have been quiet. */
async function done({ context, watch }) {
  assert.deepEqual(watch.errors, [])
  assert.deepEqual(watch.violations, [])
  assert.deepEqual(watch.foreign, [])
  await context.close()
}

test('the board is there and playable before any model is', async () => {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.route(/models\/.*safetensors|worker.*\.wasm/, () => {})
  await page.goto(server.url)
  const explore = new ExplorePage(page)
  await explore.started()
  await explore.enter('1. e4')
  await explore.key('End')
  await explore.drag('e7', 'e5')
  assert.equal(await explore.place(), '1… e5 · ply 2 of 2')
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime)
  console.log(`first contentful paint after ${Math.round(paint)} ms`)
  await context.close()
})

test('a first visitor sees a model go wrong without a click', async () => {
  const opened = await explore()
  const { page } = opened
  assert.match(await page.textContent('#game-title'), /Reti/)
  assert.ok((await page.locator('.badge-chip').count()) > 0, 'wrong squares carry a glyph')
  assert.ok((await page.locator('square.wrong').count()) > 0, 'wrong squares carry a pattern')
  assert.match(await page.textContent('#lede'), /of 75 labels|of them wrong/)
  assert.equal(new URL(page.url()).hash, '', 'the address stays clean')
  assert.equal(await page.locator('#labels tbody tr').count(), 11)
  assert.match(await page.textContent('.strip-name'), /first mistake at ply \d+|no mistake/)
  await done(opened)
})

test('pieces move by drag, by click, by keyboard and by typing', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await it.enter('1. e4')
  await it.key('End')
  await it.drag('e7', 'e5')
  await it.click('g1')
  await it.click('f3')
  assert.equal(await it.place(), '2. Nf3 · ply 3 of 3')
  // Over the board by keyboard: b8, then c6.
  await page.locator('[role=gridcell][tabindex="0"]').focus()
  await it.walk('b8')
  await page.keyboard.press('Enter')
  await it.walk('c6')
  await page.keyboard.press('Enter')
  await it.placed('2… Nc6 · ply 4 of 4')
  await it.enter('f1b5')
  await it.enter('a6')
  assert.equal(await it.place(), '3… a6 · ply 6 of 6')
  await it.answered()
  assert.match(await page.textContent('#model-main .summary'), /of 7 states exact/)
  await done(opened)
})

test('an illegal move is taken back, and the reason is said', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await it.enter('e4 e5')
  await it.drag('a1', 'a5')
  assert.match(await page.textContent('#note'), /a1a5 is not legal: the way from a1 to a5 is blocked/)
  await page.waitForFunction(() => document.querySelector('#live').textContent.includes('blocked'))
  assert.equal(await it.uci(), 'e2e4 e7e5')
  await page.waitForFunction(() => {
    const board = document.querySelector('#board cg-board')
    const rook = [...board.querySelectorAll('piece.white.rook')].map(piece => piece.cgKey).sort()
    return rook.join() === 'a1,h1'
  })
  await done(opened)
})

test('a promotion asks for the piece, by keyboard too, and Escape cancels', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await it.enter('1. e4 d5 2. exd5 c6 3. dxc6 Nf6 4. cxb7 Nbd7')
  await it.key('End')
  await it.drag('b7', 'a8')
  await page.waitForSelector('dialog.dialog-promotion[open]')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog[open]', { state: 'detached' })
  assert.equal(await it.place(), '4… Nbd7 · ply 8 of 8')
  await it.drag('b7', 'a8')
  await page.waitForSelector('dialog.dialog-promotion[open]')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'queen')
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(key)
  await it.placed('5. bxa8=N · ply 9 of 9')
  await done(opened)
})

test('every kind of text is read, and errors say where', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  const messy = '[White "A"]\n[Black "B"]\n\n1. e4 {a (nested} comment} c5 $14 (1... e5 2. Nf3 (2. f4)) 2.Nf3!? d6 ; rest\n3. d4 *'
    .replace('(nested} comment}', 'comment}')
  for (const [text, plies] of [[messy, 5], ['e2e4 c7c5 g1f3', 3], ['1.e4 c5 2.Nf3', 3], ['e4 c5 Nf3 d6', 4]]) {
    await it.enter(text)
    await page.waitForFunction(plies => document.querySelector('.place').textContent.endsWith(`of ${plies}`), plies)
  }
  await page.fill('#text', '1. e4 e5\n2. Ke3 Nf6')
  await page.waitForFunction(() => document.querySelector('#note').textContent.includes('line 2, column 4, ply 3'))
  await it.enter('1. e4 e5\n2. Ke3 Nf6')
  assert.equal(await page.inputValue('#text'), '1. e4 e5\n2. Ke3 Nf6', 'the text is kept')
  await page.click('#legal')
  await it.placed('1… e5 · ply 2 of 2')
  await it.enter('[FEN "4k3/8/8/8/8/8/8/4K2R w K - 0 1"]\n\nO-O')
  assert.match(await page.textContent('#note'), /only the standard start is read/)
  await it.enter('[Variant "Chess960"]\n\ne4')
  assert.match(await page.textContent('#note'), /another variant/)
  await it.enter('[Event "x"]\n\n1. e4 *\n\n[Event "y"]\n\n1. zz *\n\n[Event "z"]\n\n1. c4 *')
  await page.waitForSelector('dialog.dialog-games[open]')
  assert.equal(await page.locator('dialog .list button.damaged').count(), 1)
  await page.click('dialog li:nth-child(3) button')
  await page.waitForFunction(() => document.querySelector('#game-title').textContent === 'z')
  await page.evaluate(text => navigator.clipboard.writeText(text), '1. d4 d5')
  await page.click('#paste')
  await page.waitForFunction(() => document.querySelector('.place').textContent.endsWith('of 2'))
  assert.equal(await it.uci(), 'd2d4 d7d5')
  await done(opened)
})

test('a random game is the one of the command line', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await page.fill('#seed', '42')
  await page.click('#random button')
  await page.waitForFunction(() => document.querySelector('#game-title').textContent.includes('seed 42'))
  const dir = mkdtempSync(join(tmpdir(), 'cwm-random-'))
  try {
    await cwm('data', 'random', '--games', '1', '--seed', '42', '--out', join(dir, 'games'))
    const line = JSON.parse(await cwm('data', 'export', join(dir, 'games'), '--out', '-'))
    assert.equal(await it.uci(), line.moves.filter(id => id < 20480).map(uciOf).join(' '))
  } finally {
    rmSync(dir, { recursive: true })
  }
  await page.keyboard.press('Escape')
  await page.locator('h2').first().click()
  await it.key('r')
  await page.waitForFunction(() => !document.querySelector('#game-title').textContent.includes('seed 42'))
  assert.match(await page.textContent('#game-title'), /seed \d+/)
  await done(opened)
})

const uciOf = id => {
  const square = at => 'abcdefgh'[at % 8] + (Math.floor(at / 8) + 1)
  const squares = Math.floor(id / 5)
  return square(Math.floor(squares / 64)) + square(squares % 64) + ['', 'q', 'r', 'b', 'n'][id % 5]
}

test('a link brings back models, moves, ply, view and orientation; Back and Forward work', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await page.fill('#seed', '7')
  await page.click('#random button')
  await page.waitForFunction(() => document.querySelector('#game-title').textContent.includes('seed 7'))
  await page.selectOption('#pick-main', 'naive-mover')
  await it.go(17)
  await page.check('#views input[value=model]', { force: true })
  await page.click('#flip')
  await page.click('[data-copy=link]')
  const link = await it.copied(text => text.includes('#'))
  assert.ok(link.length < 2000, `${link.length} characters`)
  const uci = await it.uci()
  const place = await it.place()
  const other = await openPage(browser, server.url, { path: new URL(link).hash, context: { permissions: ['clipboard-read', 'clipboard-write'] } })
  const there = new ExplorePage(other.page)
  await there.started()
  assert.equal(await there.uci(), uci)
  assert.equal(await there.place(), place)
  assert.equal(await other.page.inputValue('#pick-main'), 'naive-mover')
  assert.ok(await other.page.isChecked('#views input[value=model]'))
  assert.ok(await other.page.locator('#board .orientation-black').count())
  await done(other)
  await it.enter('d4 d5')
  await page.waitForFunction(() => document.querySelector('.place').textContent.endsWith('of 2'))
  await page.goBack()
  await it.placed(place)
  await page.goForward()
  await page.waitForFunction(() => document.querySelector('.place').textContent.endsWith('of 2'))
  await done(opened)
})

test('keys do what the help says, but not in inputs and not with modifiers', async () => {
  const opened = await explore({ path: '#m=naive-mover' })
  const { page, explore: it } = opened
  await it.enter('1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 4. O-O O-O')
  await page.locator('h2').first().click()
  const at = async key => {
    await it.key(key)
    return it.ply()
  }
  assert.equal(await at('End'), 8)
  assert.equal(await at('ArrowLeft'), 7)
  assert.equal(await at('Home'), 0)
  assert.equal(await at('ArrowRight'), 1)
  assert.equal(await at('ArrowDown'), 8)
  assert.equal(await at('ArrowUp'), 0)
  assert.equal(await at('e'), 7)
  assert.equal(await at('e'), 8)
  assert.equal(await at('E'), 7)
  await it.key('f')
  assert.equal(await page.locator('#board .orientation-black').count(), 1)
  await it.key('d')
  assert.ok(await page.isChecked('#views input[value=truth]'))
  await page.keyboard.press('Control+ArrowLeft')
  await page.keyboard.press('Alt+f')
  assert.equal(await it.ply(), 7)
  await it.key('/')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'text')
  await page.keyboard.type('fdr')
  assert.equal(await page.inputValue('#text'), 'fdr')
  assert.equal(await it.ply(), 7)
  await page.fill('#text', '')
  await page.locator('h2').first().click()
  await it.key('?')
  await page.waitForSelector('dialog.dialog-help[open]')
  assert.equal(await page.locator('.keys tr').count(), 12)
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog[open]', { state: 'detached' })
  await done(opened)
})

test('stepping: the slider, a held button, the wheel over the board', async () => {
  const opened = await explore({ path: '#m=oracle&c=' })
  const { page, explore: it } = opened
  await page.locator('#ply').fill('5')
  assert.equal(await it.ply(), 5)
  assert.match(await page.getAttribute('#ply', 'aria-valuetext'), /ply 5 of 21, .*exact/)
  const box = await page.locator('[data-go=next]').boundingBox()
  await page.mouse.move(box.x + 5, box.y + 5)
  await page.mouse.down()
  await page.waitForFunction(() => Number(document.querySelector('#ply').value) >= 12)
  await page.mouse.up()
  const held = await it.ply()
  const board = await page.locator('#board').boundingBox()
  await page.mouse.move(board.x + 100, board.y + 100)
  await page.mouse.wheel(0, -120)
  await page.waitForFunction(held => Number(document.querySelector('#ply').value) === held - 1, held)
  await done(opened)
})

test('a square under the pointer or the focus is told of, with its three most probable classes', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  const [x, y] = await it.centre('e1')
  await page.mouse.move(x, y)
  await page.waitForFunction(() => document.querySelector('#inspector').textContent.startsWith('e1 is'))
  assert.ok((await page.locator('#inspector li').count()) >= 3)
  assert.ok(await page.locator('#board .sq.lit').count())
  await page.mouse.move(5, 5)
  await page.locator('tr[data-label="65"] button').focus()
  await page.waitForFunction(() => document.querySelector('#inspector').textContent.startsWith('White castles short'))
  assert.ok(await page.locator('tr[data-label="65"].lit').count())
  await done(opened)
})

test('what is copied is what is on screen', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await it.enter('e4 e5 Nf3')
  await page.waitForFunction(() => document.querySelector('.place').textContent.endsWith('of 3'))
  await it.key('End')
  await page.click('[data-copy=fen]')
  assert.equal(await it.copied(text => text.includes('/')), 'rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2')
  await page.waitForFunction(() => document.querySelector('#live').textContent.includes('copied as FEN'))
  await page.click('[data-copy=pgn]')
  assert.match(await it.copied(text => text.includes('[Event')), /1\. e4 e5 2\. Nf3 \*/)
  await done(opened)
})

test('the gallery holds the classics and failures that were found', async () => {
  const opened = await explore()
  const { page, explore: it } = opened
  await page.click('#gallery')
  await page.waitForFunction(() => /Where transformer/.test(document.querySelector('dialog').textContent))
  const failure = page.locator('dialog section').first().locator('button').first()
  await failure.click()
  await page.waitForSelector('dialog[open]', { state: 'detached' })
  await it.answered()
  assert.ok((await it.ply()) > 0)
  await done(opened)
})

test('an engine that cannot be loaded is told of and can be restarted; the game survives', async () => {
  // A service worker would fetch behind the back of the route below.
  const context = await browser.newContext({ serviceWorkers: 'block' })
  const page = await context.newPage()
  await page.route(/worker.*\.wasm/, route => route.abort())
  await page.goto(`${server.url}#c=`)
  const it = new ExplorePage(page)
  await it.started()
  await it.enter('e4 e5')
  await page.waitForSelector('#model-main .trouble button')
  assert.match(await page.textContent('#model-main .trouble'), /Restart engine/)
  await page.unroute(/worker.*\.wasm/)
  await page.click('#model-main .trouble button')
  await it.answered()
  assert.match(await page.textContent('#model-main .summary'), /of 3 states exact/)
  await context.close()
})
