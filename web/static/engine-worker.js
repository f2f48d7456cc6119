// A worker with the engine on the CPU.
import { run } from './host.js'
import start, { hear } from './worker.js'

await run(start, hear)
