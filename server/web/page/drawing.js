// Draws a graph that can be moved and zoomed, with the mouse or the keyboard.
import {element} from './elements.js';
import {layout} from './layout.js';

const kHeight = 40;
const kCharacter = 7.6;  // of the nodes' titles, in pixels
const kTitleMax = 34;

const shortened = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

function sized(node) {
  const title = shortened(node.title, kTitleMax);
  const subtitle = shortened(node.subtitle ?? '', kTitleMax + 6);
  const width = Math.max(title.length * kCharacter, subtitle.length * (kCharacter - 1), 60) + 20;
  return {...node, title, subtitle, tip: node.tip ?? node.title, width, height: kHeight};
}

function drawEdges(stage, edges, tips) {
  const line = d3.svg.line().x((p) => p.x).y((p) => p.y).interpolate('basis');
  const drawn = stage.append('g').attr('class', 'edges').selectAll('path').data(edges).enter().append('path');
  drawn.attr({d: (edge) => line(edge.points), 'marker-end': 'url(#arrow)', 'data-from': (e) => e.from, 'data-to': (e) => e.to});
  drawn.append('title').text((edge) => tips.get(`${edge.from} ${edge.to}`) ?? '');
}

function drawNodes(stage, nodes, places, onOpen) {
  const drawn = stage.append('g').attr('class', 'nodes').selectAll('g').data(nodes).enter().append('g').attr({
    class: (node) => `node ${node.kind ?? ''}`, 'data-node': (node) => node.id,
    tabindex: 0, role: onOpen ? 'link' : 'img', 'aria-label': (node) => `${node.title} ${node.subtitle}`,
    transform: (node) => `translate(${places.get(String(node.id)).x - node.width / 2},${places.get(String(node.id)).y - kHeight / 2})`});
  drawn.append('rect').attr({width: (node) => node.width, height: kHeight, rx: 6});
  // The part of the time, as a bar at the left edge.
  drawn.filter((node) => node.heat > 0).append('rect')
    .attr({class: 'heat', width: 5, x: 0, rx: 2, y: (node) => kHeight * (1 - Math.min(node.heat, 1)),
           height: (node) => kHeight * Math.min(node.heat, 1)});
  drawn.append('text').attr({class: 'title', x: 12, y: 17}).text((node) => node.title);
  drawn.append('text').attr({class: 'subtitle', x: 12, y: 32}).text((node) => node.subtitle);
  drawn.append('title').text((node) => node.tip);
  const mark = (node, isMarked) => d3.select(stage.node()).selectAll('.edges path').filter(
    (edge) => String(edge.from) === String(node.id) || String(edge.to) === String(node.id)).classed('marked', isMarked);
  drawn.on('mouseenter', (node) => mark(node, true)).on('mouseleave', (node) => mark(node, false));
  drawn.on('focus', (node) => mark(node, true)).on('blur', (node) => mark(node, false));
  if (!onOpen) return;
  drawn.on('click', (node) => { if (!d3.event.defaultPrevented) onOpen(node); });
  drawn.on('keydown', (node) => { if (d3.event.key === 'Enter') onOpen(node); });
}

function addArrow(svg) {
  svg.append('defs').append('marker')
    .attr({id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto'})
    .append('path').attr({d: 'M0,0L8,4L0,8Z'});
}

// Lets the stage be moved and zoomed; returns the buttons that do it, too.
function addZoom(svg, stage, size, box) {
  const zoom = d3.behavior.zoom().scaleExtent([0.02, 4]);
  const show = () => stage.attr('transform', `translate(${zoom.translate()})scale(${zoom.scale()})`);
  zoom.on('zoom', show);
  const scaleBy = (factor) => {
    const [x, y] = zoom.translate();
    const {width, height} = box.getBoundingClientRect();
    zoom.scale(zoom.scale() * factor);
    zoom.translate([width / 2 + (x - width / 2) * factor, height / 2 + (y - height / 2) * factor]);
    show();
  };
  const fit = (scaleMin) => {
    const {width, height} = box.getBoundingClientRect();
    const scale = Math.max(Math.min(width / size.width, height / size.height, 1.2), scaleMin);
    zoom.scale(scale);
    zoom.translate([Math.max((width - size.width * scale) / 2, scaleMin > 0.02 ? -Infinity : 8), 8]);
    show();
  };
  svg.call(zoom).on('dblclick.zoom', null);
  box.addEventListener('keydown', (event) => {
    const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
    if (event.key === '+') return scaleBy(1.25);
    if (event.key === '-') return scaleBy(0.8);
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const [x, y] = zoom.translate();
    zoom.translate([x + step[0], y + step[1]]);
    show();
  });
  fit(0.55);
  return element('div', {class: 'zoom'},
    element('button', {type: 'button', title: 'Zoom in (+)', 'aria-label': 'Zoom in', onclick: () => scaleBy(1.25)}, '+'),
    element('button', {type: 'button', title: 'Zoom out (-)', 'aria-label': 'Zoom out', onclick: () => scaleBy(0.8)}, '−'),
    element('button', {type: 'button', title: 'Show all of it', onclick: () => fit(0.02)}, 'Fit'));
}

// Shows a graph in `box`. Nodes: {id, title, subtitle, tip, kind, heat (0 to 1)}; edges: {from, to, tip}. `onOpen` is called
// with a node that is chosen.
export async function draw(box, nodes, edges, {onOpen, signal} = {}) {
  box.replaceChildren(element('p', {class: 'quiet'}, 'Drawing …'));
  const wide = nodes.map(sized);
  const places = await layout(wide, edges.map(({from, to}) => ({from, to})), signal);
  const svg = d3.select(document.createElementNS('http://www.w3.org/2000/svg', 'svg'))
    .attr({class: 'graph', role: 'group', 'aria-label': `A graph of ${nodes.length} nodes`});
  box.replaceChildren(svg.node());
  addArrow(svg);
  const stage = svg.append('g');
  drawEdges(stage, places.edges, new Map(edges.map((edge) => [`${edge.from} ${edge.to}`, edge.tip])));
  drawNodes(stage, wide, new Map(places.nodes.map((node) => [String(node.id), node])), onOpen);
  box.append(addZoom(svg, stage, places, box));
  box.dataset.nodes = nodes.length;
}
