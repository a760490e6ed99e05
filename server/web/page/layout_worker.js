// Places the nodes of a graph in layers. A worker, so that the page stays quick meanwhile.
self.window = self;  // dagre looks for its parts there
importScripts('dagre.min.js');

onmessage = ({data}) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({rankdir: 'TB', nodesep: 18, ranksep: 34, marginx: 12, marginy: 12});
  graph.setDefaultEdgeLabel(() => ({}));
  for (const {id, width, height} of data.nodes) graph.setNode(id, {width, height});
  for (const {from, to} of data.edges) graph.setEdge(from, to);
  dagre.layout(graph);
  postMessage({
    width: graph.graph().width, height: graph.graph().height,
    nodes: data.nodes.map(({id}) => ({id, x: graph.node(id).x, y: graph.node(id).y})),
    edges: data.edges.map(({from, to}) => ({from, to, points: graph.edge(from, to).points}))});
};
