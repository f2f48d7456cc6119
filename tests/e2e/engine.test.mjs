// The engine in a real worker, against the command line and against files that are not what they should be.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cwm, dist, launchChromium, openEngine, root, said, serve, slack } from './harness.mjs'
import { assertAlike, numbersOf } from './reports.mjs'

let server, browser, engine
const shipped = 'transformer-d128'

before(async () => {
  server = await serve()
  browser = await launchChromium()
  engine = await openEngine(browser, server.url)
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

test('a shipped checkpoint opens, and one move is answered within 50 ms', async t => {
  const opened = said(await engine.ask({ ask: 'open', name: shipped, source: { from: 'shipped' } }), 'opened')
  assert.equal(opened.facts.family, 'transformer')
  assert.equal(opened.facts.labels, 75)
  t.diagnostic(`built in ${opened.facts.build_millis.toFixed(0)} ms, fetched in ${opened.facts.fetch_millis.toFixed(0)} ms`)
  const e4 = (12 * 64 + 28) * 5, e5 = (52 * 64 + 36) * 5, knight = (6 * 64 + 21) * 5
  await engine.ask({ ask: 'predict', tokens: [e4, e5], from_step: 0 })
  const times = []
  for (let i = 0; i < 20; i++) {
    // Forth along the line, back, and forth along another one.
    const tokens = i % 2 ? [e4, e5, knight] : [e4, e5, (1 * 64 + 18) * 5]
    const replies = await engine.ask({ ask: 'predict', tokens, from_step: 3 })
    const step = said(replies, 'step')
    assert.equal(step.answer.step, 3)
    assert.equal(step.answer.probabilities.length, 75)
    times.push(said(replies, 'predicted').millis)
  }
  times.sort((a, b) => a - b)
  t.diagnostic(`one move: median ${times[10].toFixed(1)} ms, slowest ${times[19].toFixed(1)} ms`)
  assert.ok(times[10] < 50 * slack, `${times[10]} ms`)
})

for (const name of JSON.parse(readFileSync(join(dist, 'models', 'index.json'), 'utf8')).map(({ name }) => name)) {
  test(`the page grades ${name} as the command line does`, async t => {
    const games = 40
    await engine.ask({ ask: 'open', name, source: { from: 'shipped' } })
    const sets = [{ set: 'classics' }, ...['uniform', 'en-passant'].map(policy => ({ set: 'random', policy, seed: 7, games, min_fullmoves: 10 }))]
    const replies = await engine.ask({ ask: 'grade', model: true, baselines: ['naive-mover+rights', 'oracle'], sets, limit: null, worst: 3 })
    const graded = said(replies, 'graded')
    assert.ok(graded?.complete, JSON.stringify(replies.at(-1)))
    const native = JSON.parse(await cwm('evaluate', name, 'naive-mover+rights', 'oracle', '--human-sample', '--random', String(games),
      '--policy', 'uniform,en-passant', '--seed', '7', '--worst', '3', '--format', 'json', '--progress', 'none'))
    assert.equal(graded.report.evaluations.length, 9)
    // Recurrences carry a processor's rounding along a game, into near ties.
    if (['transition', 'transformer-d128'].includes(name)) assert.deepEqual(numbersOf(graded.report), numbersOf(native))
    else assertAlike(graded.report, native)
    assert.deepEqual(graded.report.datasets, native.datasets)
    assert.deepEqual(graded.report.trackers, native.trackers)
    for (const { what, steps, millis } of graded.timings) {
      if (steps > 0 && what.startsWith(name)) t.diagnostic(`${what}: ${steps} steps, ${(steps / millis * 1000).toFixed(0)} steps/s`)
    }
  })
}

test('a PGN is graded as the command line grades it', async () => {
  const pgn = join(root, 'models', 'splits', 'classics', 'classics.pgn')
  await engine.ask({ ask: 'open', name: shipped, source: { from: 'shipped' } })
  const sets = [{ set: 'pgn', name: 'mine', min_fullmoves: 0 }]
  const graded = said(await engine.ask({ ask: 'grade', model: true, baselines: [], sets, limit: null, worst: 3 }, [{ path: pgn }]), 'graded')
  const native = JSON.parse(await cwm('evaluate', shipped, '--data', `mine=${pgn}`, '--worst', '3', '--format', 'json', '--progress', 'none'))
  assert.deepEqual(numbersOf(graded.report), numbersOf(native))
})

test('a cancelled grade answers within 300 ms and keeps what it has', async t => {
  await engine.ask({ ask: 'open', name: shipped, source: { from: 'shipped' } })
  const sets = [{ set: 'random', policy: 'uniform', seed: 1, games: 400, min_fullmoves: 10 }]
  const id = await engine.post({ ask: 'grade', model: true, baselines: [], sets, limit: null, worst: 0 })
  const millis = await engine.page.evaluate(async id => {
    await bench.until(() => (bench.replies.get(id) ?? []).filter(reply => reply.event?.event === 'graded').length >= 3)
    const started = performance.now()
    const cancel = bench.post({ ask: 'cancel', request: id })
    await bench.until(() => bench.last(cancel))
    return performance.now() - started
  }, id)
  const graded = said(await engine.replies(id), 'graded')
  assert.equal(graded.complete, false)
  assert.equal(graded.report.evaluations[0].complete, false)
  assert.ok(graded.report.evaluations[0].games > 0)
  t.diagnostic(`cancelled after ${millis.toFixed(0)} ms`)
  assert.ok(millis < 300 * slack, `${millis} ms`)
})

test('moves are answered while a grade runs', async () => {
  const sets = [{ set: 'random', policy: 'uniform', seed: 1, games: 200, min_fullmoves: 10 }]
  const id = await engine.post({ ask: 'grade', model: true, baselines: [], sets, limit: null, worst: 0 })
  const replies = await engine.ask({ ask: 'predict', tokens: [], from_step: 0 })
  assert.equal(said(replies, 'predicted').steps, 1)
  assert.equal(await engine.page.evaluate(id => Boolean(bench.last(id)), id), false, 'the grade ended first')
  await engine.ask({ ask: 'cancel', request: id })
  await engine.replies(id)
})

/** The shipped file with its header changed by `edit`, or with other bytes behind it. */
function damaged({ edit = header => header, bytes = data => data } = {}) {
  const file = readFileSync(join(root, 'models', 'checkpoints', shipped, 'model.safetensors'))
  const length = Number(file.readBigUInt64LE(0))
  const header = Buffer.from(JSON.stringify(edit(JSON.parse(file.subarray(8, 8 + length).toString()))))
  const size = Buffer.alloc(8)
  size.writeBigUInt64LE(BigInt(header.length))
  return bytes(Buffer.concat([size, header, file.subarray(8 + length)]), 8 + header.length)
}
const tensor = header => Object.keys(header).find(name => name !== '__metadata__' && header[name].shape.length === 2)
const change = field => ({ edit: header => { const name = tensor(header); header[name] = field(header[name]); return header } })

const malformed = {
  'CKPT-TRUNCATED': () => Buffer.alloc(4),
  'CKPT-HEADER-LENGTH': () => Buffer.concat([Buffer.from('ffffffffffffff7f', 'hex'), Buffer.from('{}')]),
  'CKPT-HEADER-JSON': () => Buffer.concat([Buffer.from('0500000000000000', 'hex'), Buffer.from('{oops')]),
  'CKPT-EMPTY': () => Buffer.concat([Buffer.from('0200000000000000', 'hex'), Buffer.from('{}')]),
  'CKPT-DTYPE': () => damaged(change(entry => ({ ...entry, dtype: 'I8' }))),
  'CKPT-LENGTH': () => damaged(change(entry => ({ ...entry, shape: [entry.shape[0], entry.shape[1] + 1] }))),
  'CKPT-RANGE': () => damaged({ bytes: data => data.subarray(0, data.length - 1000) }),
  'CKPT-NON-FINITE': () => damaged({ bytes: (data, start) => { data.fill(0xff, start, data.length); return data } }),
  'CKPT-KIND': () => Buffer.from('1f8b0800000000000003', 'hex'),
}
for (const [expected, make] of Object.entries(malformed)) {
  test(`a malformed checkpoint is called ${expected}, and the open one stays`, async () => {
    await engine.ask({ ask: 'open', name: shipped, source: { from: 'shipped' } })
    const failed = said(await engine.ask({ ask: 'open', name: 'bad', source: { from: 'files' } }, [{ bytes: make() }]), 'failed')
    assert.equal(failed?.fault.code, expected, JSON.stringify(failed))
    assert.ok(failed.fault.message && failed.fault.hint)
    assert.ok(said(await engine.ask({ ask: 'predict', tokens: [], from_step: 0 }), 'predicted'))
  })
}

test('nothing went wrong on the way, and nothing left the origin', () => {
  assert.deepEqual(engine.watch.errors, [])
  assert.deepEqual(engine.watch.violations, [])
  assert.deepEqual(engine.watch.foreign, [])
})
