// Starts the page: the app (rules, the game on screen) on this thread, the engine (networks) in a worker.
import start from './app.js'
import { Engine } from './engine.js'

await start()
const engine = new Engine(reply => console.info(reply))
engine.start()
