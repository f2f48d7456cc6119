// The session lives in Rust; this carries commands to it and its effects out.
import { Engine } from '../engine.js'
import { byId } from './dom.js'

/** Carries commands, replies and effects; calls `render` with a view once a frame. */
export class Session {
  constructor(app, hooks) {
    this.app = app
    this.hooks = hooks
    this.engines = new Map()
    this.files = new Map()
    this.lastKey = 0
    this.revisions = [0, 0]
    this.scheduled = false
    this.broken = false
    this.announced = 0
  }

  /** Carries out a command. */
  do(command) {
    this.guard(() => this.take(JSON.parse(this.app.command(JSON.stringify(command)))))
  }

  hear(lane, reply) {
    this.guard(() => this.take(JSON.parse(this.app.hear(lane, reply))))
  }

  /** Keeps a file and returns its key. */
  keep(file) {
    const key = `file-${++this.lastKey}`
    this.files.set(key, file)
    return key
  }

  // A panic leaves the session unusable, but what is on screen, and the link to it, stay.
  guard(work) {
    if (this.broken) return
    try {
      work()
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) console.error(error)
      this.broken = true
      this.hooks.broken(error)
      return
    }
    this.schedule()
  }

  schedule() {
    if (this.scheduled) return
    this.scheduled = true
    const draw = () => {
      this.scheduled = false
      this.draw()
    }
    // Hidden tabs get no frames, but their state must stay right.
    if (document.hidden) setTimeout(draw, 100)
    else requestAnimationFrame(draw)
  }

  draw() {
    if (this.broken) return
    let view
    try {
      view = JSON.parse(this.app.view(...this.revisions))
    } catch (error) {
      this.broken = true
      this.hooks.broken(error)
      return
    }
    this.revisions[0] = view.revision
    if (view.grade) this.revisions[1] = view.grade.revision
    this.hooks.render(view)
  }

  take(effects) {
    for (const effect of effects) this.perform(effect)
  }

  perform(effect) {
    switch (effect.effect) {
      case 'start_engine':
        return this.startEngine(effect.lane)
      case 'post':
        return this.engines.get(effect.lane)?.post(effect.text, effect.files.map(key => this.files.get(key)))
      case 'announce':
        return this.announce(effect.text)
      case 'toast':
        return this.hooks.toast(effect)
      case 'copy':
        return this.copy(effect)
      case 'history':
        return this.history(effect)
      case 'focus_input':
        return byId('text').focus()
      case 'clear_input':
        byId('text').value = ''
        return
      case 'chart':
        return this.hooks.chart(effect)
      case 'later':
        // What takes a while is done in parts, and other work comes in between.
        setTimeout(() => this.do(JSON.parse(effect.command)))
        return
      case 'save':
        return save(effect.name, new Blob([effect.text], { type: effect.mime }))
    }
  }

  // An engine tells of its own crashes. Boards are answered on the CPU, which has one step sooner than a GPU.
  startEngine(lane) {
    this.engines.get(lane)?.stop()
    const engine = new Engine(reply => this.engines.get(lane) === engine && this.hear(lane, reply), { gpu: lane === 'grade' })
    this.engines.set(lane, engine)
    engine.start()
  }

  // One announcement at a time: while a button is held, only the last is worth saying.
  announce(text) {
    clearTimeout(this.announced)
    this.announced = setTimeout(() => {
      const live = byId('live')
      live.textContent = live.textContent === text ? `${text}\u00a0` : text
    }, 120)
  }

  async copy({ text, link, done }) {
    const url = new URL(location.href)
    if (link) url.hash = text
    try {
      await navigator.clipboard.writeText(link ? url.href : text)
      this.announce(done)
      this.hooks.toast({ level: 'note', text: done, hint: '' })
    } catch {
      this.hooks.toast({ level: 'error', text: 'the browser does not let this page copy', hint: link ? url.href : text })
    }
  }

  // Browsers allow few changes of the URL a second: a held key writes only the last.
  history({ hash, push }) {
    const url = new URL(location.href)
    url.hash = hash
    clearTimeout(this.writing)
    if (push) {
      history.pushState(null, '', url)
    } else {
      this.writing = setTimeout(() => history.replaceState(null, '', url), 250)
    }
  }
}

/** Hands a file to the user. */
export function save(name, blob) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
