// Lets the page work without a network, and says when there is a new version.

/**
 * Registers the service worker. `onUpdate` hears of a new version that waits, with a function that changes to it.
 * @param {(reload: () => void) => void} onUpdate
 */
export async function keepOffline(onUpdate) {
  if (!('serviceWorker' in navigator)) return
  const container = navigator.serviceWorker
  let registration
  try {
    registration = await container.register(new URL('./sw.js', import.meta.url), { updateViaCache: 'none' })
  } catch (error) {
    console.warn(`the page will not work offline: ${error.message}`)
    return
  }
  let wanted = false
  container.addEventListener('controllerchange', () => { if (wanted) location.reload() })
  const offer = () => {
    const { waiting } = registration
    // The first version of all has nobody to wait for.
    if (waiting && container.controller) onUpdate(() => { wanted = true; waiting.postMessage('take over') })
  }
  registration.addEventListener('updatefound', () => {
    registration.installing?.addEventListener('statechange', event => { if (event.target.state === 'installed') offer() })
  })
  offer()
}
