// A worker with the engine on the GPU.
import { run } from './host.js'
import start, { hear } from './gpu.js'

// The engine's shaders use subgroups wherever the adapter has them, but its library forgets to ask for them when it opens
// the device in a browser: the shaders would be refused. So they are asked for here.
const { requestDevice } = GPUAdapter.prototype
GPUAdapter.prototype.requestDevice = function (descriptor = {}) {
  const wanted = new Set(descriptor.requiredFeatures ?? [])
  if (this.features.has('subgroups')) wanted.add('subgroups')
  return requestDevice.call(this, { ...descriptor, requiredFeatures: [...wanted] })
}

await run(start, hear)
