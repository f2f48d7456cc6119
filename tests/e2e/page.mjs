// The page's parts, for tests.

/** The Explore page. */
export class ExplorePage {
  constructor(page) {
    this.page = page
  }

  /** Waits until there are pieces on the board. */
  async started() {
    await this.page.waitForSelector('#board cg-board piece', { timeout: 60_000 })
  }

  /** Waits until every seated model has answered the whole line. */
  async answered() {
    await this.page.waitForFunction(() => {
      const seats = [...document.querySelectorAll('.model:not(.empty)')]
      return seats.length > 0 && seats.every(seat => {
        const summary = seat.querySelector('.summary').textContent
        return summary.includes('states exact') && !summary.includes('answered')
      })
    }, null, { timeout: 120_000 })
  }

  async enter(text) {
    await this.page.fill('#text', text)
    await this.page.press('#text', 'Enter')
    await this.drawn()
  }

  /** Waits for two frames: what was asked for is drawn. */
  async drawn() {
    await this.page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))
  }

  async key(key) {
    await this.page.evaluate(() => document.activeElement?.matches('input, textarea, select') && document.activeElement.blur())
    await this.page.keyboard.press(key)
    await this.drawn()
  }

  place() {
    return this.page.textContent('.place')
  }

  placed(text) {
    return this.page.waitForFunction(text => document.querySelector('.place').textContent === text, text)
  }

  async ply() {
    await this.drawn()
    return Number(await this.page.inputValue('#ply'))
  }

  async go(ply) {
    await this.page.locator('#ply').fill(String(ply))
    await this.drawn()
  }

  /** The clipboard's text as soon as it fulfils a condition. */
  async copied(condition) {
    for (;;) {
      const text = await this.page.evaluate(() => navigator.clipboard.readText())
      if (condition(text)) return text
    }
  }

  async uci() {
    await this.page.evaluate(() => navigator.clipboard.writeText('-'))
    await this.page.click('[data-copy=uci]')
    return this.copied(text => text !== '-')
  }

  /** The middle of a square, with White at the bottom. */
  async centre(square) {
    const board = this.page.locator('#board')
    await board.scrollIntoViewIfNeeded()
    const box = await board.boundingBox()
    const [file, rank] = [square.charCodeAt(0) - 97, Number(square[1])]
    return [box.x + ((file + 0.5) * box.width) / 8, box.y + ((8 - rank + 0.5) * box.height) / 8]
  }

  async drag(from, to) {
    await this.page.mouse.move(...(await this.centre(from)))
    await this.page.mouse.down()
    await this.page.mouse.move(...(await this.centre(to)), { steps: 4 })
    await this.page.mouse.up()
    await this.drawn()
  }

  async click(square) {
    await this.page.mouse.click(...(await this.centre(square)))
    await this.drawn()
  }

  /** Walks the focus over the board to a square with the arrow keys. */
  async walk(square) {
    const here = await this.page.evaluate(() => document.activeElement.getAttribute('aria-label').slice(0, 2))
    const [files, ranks] = [square.charCodeAt(0) - here.charCodeAt(0), Number(square[1]) - Number(here[1])]
    for (let i = 0; i < Math.abs(files); i++) await this.page.keyboard.press(files > 0 ? 'ArrowRight' : 'ArrowLeft')
    for (let i = 0; i < Math.abs(ranks); i++) await this.page.keyboard.press(ranks > 0 ? 'ArrowUp' : 'ArrowDown')
  }
}

/** Longest stretches of computing, in milliseconds of the main thread's own CPU time, between start and stop of a trace. */
export function busiest(trace) {
  const { traceEvents } = JSON.parse(trace)
  const mains = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid}/${tid}`))
  const tasks = traceEvents.filter(({ name, ph, pid, tid }) => ph === 'X' && name.endsWith('RunTask') && mains.has(`${pid}/${tid}`))
  return tasks.map(({ tdur = 0 }) => tdur / 1000).sort((a, b) => b - a)
}
