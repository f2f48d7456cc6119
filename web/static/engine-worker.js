// A worker with the engine inside it. Messages that come before it is up are kept for it.
import start from './worker.js'

const early = []
self.onmessage = event => early.push(event.data)
await start()
for (const message of early) self.onmessage({ data: message })
