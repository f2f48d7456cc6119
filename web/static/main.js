// Starts the page: the session (rules, the game on screen) on this thread, engines (networks) in workers.
import start, { App } from './app.js'
import { keepOffline } from './offline.js'
import { byId } from './page/dom.js'
import { Explore } from './page/explore.js'
import { GradePage } from './page/grade.js'
import { Session } from './page/session.js'
import { Shell } from './page/shell.js'

/** The checkpoints that the page ships, the default one first. */
async function shippedCheckpoints() {
  try {
    const answer = await fetch(new URL('./models/index.json', import.meta.url))
    return answer.ok ? await answer.json() : []
  } catch {
    return []
  }
}

const shipped = shippedCheckpoints()
await start()
let explore, grade, shell
const session = new Session(new App(), {
  render: view => {
    shell.render(view)
    explore.render(view)
    grade.render(view)
  },
  toast: message => shell.toast(message),
  chart: chart => grade.addChart(chart),
  broken: error => shell.broken(error),
})
shell = new Shell(session, App.keys())
explore = new Explore(session)
grade = new GradePage(session, shell)
byId('version').textContent = App.version()
// The board is there before anything is known of models.
session.do({ do: 'start', hash: location.hash, shipped: await shipped, entropy: crypto.getRandomValues(new Uint32Array(1))[0] })
keepOffline(reload => shell.toast({
  level: 'note', text: 'there is a new version of this page', hint: '', action: { text: 'Reload to update', work: reload },
}))
