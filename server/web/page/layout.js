// Returns where nodes ({id, width, height}) and edges ({from, to}) of a graph are drawn: {width, height, nodes: [{id, x, y}],
// edges: [{from, to, points}]}. The signal ends it early, as that of fetch does.
export function layout(nodes, edges, signal) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('layout_worker.js', import.meta.url));
    const end = (then, value) => {
      worker.terminate();
      then(value);
    };
    worker.onmessage = ({data}) => end(resolve, data);
    worker.onerror = (event) => end(reject, new Error(event.message || 'the layout failed'));
    signal?.addEventListener('abort', () => end(reject, signal.reason));
    worker.postMessage({nodes: nodes.map(({id, width, height}) => ({id, width, height})), edges});
  });
}
