// Keeps one whole version of the page: whatever is shown comes from files that were built together, with or without a
// network. `web/finish.mjs` writes the version and the list of files.
const version = 'VERSION'
const files = ['FILES']
const name = `cwm-${version}`

addEventListener('install', event => {
  event.waitUntil((async () => {
    const cache = await caches.open(name)
    await cache.addAll(files.map(file => new Request(file, { cache: 'no-cache' })))
  })())
})

addEventListener('activate', event => {
  event.waitUntil((async () => {
    for (const other of await caches.keys()) {
      if (other.startsWith('cwm-') && other !== name) await caches.delete(other)
    }
    await clients.claim()
  })())
})

// A new version waits until the user says so: a page is never made of two.
addEventListener('message', event => {
  if (event.data === 'take over') skipWaiting()
})

addEventListener('fetch', event => {
  const { request } = event
  const url = new URL(request.url)
  if (request.method !== 'GET' || !url.href.startsWith(registration.scope)) return
  event.respondWith((async () => {
    const cache = await caches.open(name)
    const found = await cache.match(request, { ignoreSearch: request.mode === 'navigate' })
    if (found) return found
    const answer = await fetch(request)
    // Larger checkpoints and the GPU's engine are kept once they were wanted.
    if (answer.ok && answer.type === 'basic') await cache.put(request, answer.clone())
    return answer
  })())
})
