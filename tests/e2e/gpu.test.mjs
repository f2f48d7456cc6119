// Grading on the GPU: a simulated one, so slow that a tiny network and few games must do.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cwm, launchChromium, openEngine, said, serve } from './harness.mjs'
import { numbersOf } from './reports.mjs'

let server, browser, scratch
const weights = {}
const games = 3
const job = { ask: 'grade', model: true, baselines: [], sets: [{ set: 'classics' }], limit: games, worst: 2 }

before(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'cwm-e2e-'))
  await cwm('data', 'random', '--games', '200', '--seed', '3', '--out', join(scratch, 'games'), '--progress', 'none')
  for (const preset of ['transformer-d128', 'slice-d128']) {
    await cwm('train', preset, '--data', join(scratch, 'games'), '--set', 'model.d_model=16', '--set', 'schedule.warmup_steps=2',
      '--set', 'optimizer.lr=0.02', '--max-steps', '30', '--runs', join(scratch, 'runs'), '--name', preset, '--progress', 'none')
    const run = readdirSync(join(scratch, 'runs')).find(run => run.includes(preset))
    weights[preset] = join(scratch, 'runs', run, 'checkpoints', 'latest', 'model.safetensors')
  }
  server = await serve()
  browser = await launchChromium({ gpu: true })
})
after(async () => {
  await browser?.close()
  await server?.stop()
  rmSync(scratch, { recursive: true, force: true })
})

/** An engine with a tiny checkpoint open; `wrap` is put before the GPU worker's own script. */
async function withGpu(wrap = '', preset = 'transformer-d128') {
  const context = await browser.newContext()
  if (wrap) {
    await context.route('**/gpu-worker.js', async route => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, body: `${await answer.text()}`.replace('await run(', `${wrap}\nawait run(`) })
    })
  }
  const engine = await openEngine(browser, server.url, { within: context, options: { gpu: true, wanted: 'webgpu' } })
  const opened = said(await engine.ask({ ask: 'open', name: 'tiny', source: { from: 'files' } }, [{ path: weights[preset] }]), 'opened')
  assert.equal(opened?.facts.size, 'd16/l1')
  return engine
}

const native = async (preset = 'transformer-d128') => JSON.parse(await cwm('evaluate', weights[preset], '--human-sample', '--limit', String(games), '--worst', '2', '--format', 'json', '--progress', 'none'))

/** What both measured, under one name: a file's is its folder's on the command line. */
const compared = report => numbersOf(report).map(({ tracker, ...numbers }) => numbers)

test('the GPU grades as the command line does, and says what it is', async t => {
  const engine = await withGpu()
  const started = Date.now()
  const replies = await engine.ask(job)
  const graded = said(replies, 'graded')
  assert.ok(graded?.complete, JSON.stringify(replies.at(-1)))
  assert.deepEqual(compared(graded.report), compared(await native()))
  const ready = (await engine.seen()).filter(({ say }) => say === 'ready')
  assert.equal(ready.at(-1).backend.kind, 'webgpu')
  assert.equal(ready.at(-1).backend.adapter.architecture, 'swiftshader')
  const phases = replies.filter(({ say }) => say === 'phase').map(({ phase, at }) => `${phase} at ${at.toFixed(0)} ms`)
  for (const phase of ['opening_gpu', 'warming_up', 'self_test']) assert.ok(phases.some(text => text.startsWith(phase)), phases.join(', '))
  t.diagnostic(`${phases.join(', ')}; ${Date.now() - started} ms in all; ${graded.report.evaluations[0].steps} steps`)
  assert.ok(engine.watch.requests.some(url => url.endsWith('gpu_bg.wasm')))
  assert.deepEqual(engine.watch.violations, [])
  await engine.context.close()
})

/** Grades, and the numbers are the command line's all the same; gives what was noticed on the way. */
async function gradesRight(engine, preset) {
  const replies = await engine.ask(job)
  const graded = said(replies, 'graded')
  assert.ok(graded?.complete, JSON.stringify(replies.at(-1)))
  assert.deepEqual(compared(graded.report), compared(await native(preset)))
  return (await engine.seen()).filter(({ say }) => say === 'notice')
}

test('own kernels run on a browser\'s GPU', async () => {
  const engine = await withGpu('', 'slice-d128')
  assert.deepEqual(await gradesRight(engine, 'slice-d128'), [])
  assert.equal((await engine.seen()).filter(({ say }) => say === 'ready').at(-1).backend.kind, 'webgpu')
  await engine.context.close()
})

test('a lost GPU is said once, and the CPU goes on to the same numbers', async () => {
  // The device goes away in the middle of the grading: after the self-test has read its answers and the first batches.
  const engine = await withGpu(`
    const create = GPUAdapter.prototype.requestDevice
    GPUAdapter.prototype.requestDevice = async function (descriptor) {
      const device = await create.call(this, descriptor)
      globalThis.addEventListener('message', ({ data }) => { if (JSON.parse(data.text).ask === 'grade') setTimeout(() => device.destroy(), 5) })
      return device
    }`)
  const notices = await gradesRight(engine)
  assert.equal(notices.length, 1, JSON.stringify(notices))
  assert.match(notices[0].fault.code, /^GPU-/)
  assert.equal(notices[0].backend.kind, 'cpu')
  // It is not tried again.
  const again = await engine.ask(job)
  assert.ok(said(again, 'graded').complete)
  assert.equal((await engine.seen()).filter(({ say }) => say === 'notice').length, 1)
  await engine.context.close()
})

test('a GPU that computes wrong is refused', async () => {
  const engine = await withGpu(`
    const write = GPUQueue.prototype.writeBuffer
    GPUQueue.prototype.writeBuffer = function (buffer, at, data, offset = 0, size) {
      const bytes = ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)
      const copy = bytes.slice()
      // Large writes are weights; small ones are shapes, which must stay for the shaders to run at all.
      if (copy.length > 4096) for (let i = 3; i < copy.length; i += 64) copy[i] ^= 0x80
      return write.call(this, buffer, at, copy, offset, size)
    }
    const create = GPUDevice.prototype.createBuffer
    GPUDevice.prototype.createBuffer = function (descriptor) {
      const buffer = create.call(this, descriptor)
      if (descriptor.mappedAtCreation && descriptor.size > 4096) {
        const unmap = buffer.unmap.bind(buffer), range = buffer.getMappedRange.bind(buffer)
        let mapped
        buffer.getMappedRange = (...where) => (mapped = range(...where))
        buffer.unmap = () => { const bytes = new Uint8Array(mapped); for (let i = 3; i < bytes.length; i += 64) bytes[i] ^= 0x80; unmap() }
      }
      return buffer
    }`)
  const notices = await gradesRight(engine)
  assert.deepEqual(notices.map(({ fault }) => fault.code), ['GPU-WRONG'])
  await engine.context.close()
})

test('a GPU that cannot be opened is left alone', async () => {
  const engine = await withGpu(`GPUAdapter.prototype.requestDevice = async () => { throw new Error('no device today') }`)
  const replies = await engine.ask(job)
  assert.ok(said(replies, 'graded')?.complete, JSON.stringify(replies.at(-1)))
  const notices = (await engine.seen()).filter(({ say }) => say === 'notice')
  assert.equal(notices.length, 1, JSON.stringify(notices))
  assert.match(notices[0].fault.code, /^GPU-/)
  await engine.context.close()
})
