// One program: its launches as a graph, its tensors as a graph, its kernels, passes and queue.
import {call} from './api.js';
import {codeBlock} from './code.js';
import {draw} from './drawing.js';
import {element} from './elements.js';
import {bytes, count, duration, percent, shortDigest, time} from './format.js';
import {facts} from './kernel_page.js';
import {columnsOfProgram, kernelsTable} from './kernels_page.js';
import {programAddress} from './programs_page.js';
import {drawingOf, parseGraph} from './tensor_graph.js';

const kParts = [['', 'Launches'], ['tensors', 'Tensors'], ['kernels', 'Kernels'], ['passes', 'Passes'], ['queue', 'Queue']];
// More nodes take long to place, and no one can read them.
const kNodesMax = 250;

function heading(program, part) {
  const runs = Number(program.runs);
  return [
    element('p', {class: 'path'}, element('a', {href: '#/programs'}, 'Programs')),
    element('h1', {}, program.name || shortDigest(program.digest)),
    facts([
      ['Program', element('code', {title: program.digest}, shortDigest(program.digest))],
      ['Device', program.devices.join(', ') || program.device],
      ['Kernels', `${count(program.kernels)} launches of ${count(program.distinct_kernels)}`],
      ['Runs', count(program.runs)], ['Time a run', runs > 0 ? duration(program.device_seconds / runs) : '-'],
      ['Device time', duration(program.device_seconds)], ['Compiled', time(program.compiled)],
      ['Compile time', program.compile_seconds > 0 ? duration(program.compile_seconds) : ''],
      ['Arena', `${bytes(program.arena_bytes)}, ${bytes(program.arena_bytes_without_reuse)} without reuse`]]),
    element('nav', {class: 'tabs', 'aria-label': 'Parts of the program'}, ...kParts.map(
      ([name, title]) => element('a', {href: programAddress(program.digest, name && `/${name}`), 'data-part': name || 'launches',
                                       'aria-current': name === part ? 'page' : undefined}, title)))];
}

// Pages through a long list of nodes; `show(begin, end)` draws a part.
async function pagedGraph(box, total, what, show) {
  let begin = 0;
  const place = element('span', {class: 'place'});
  const move = async (by) => {
    begin = Math.min(Math.max(begin + by, 0), Math.max(total - 1, 0));
    const end = Math.min(begin + kNodesMax, total);
    place.textContent = `${what} ${count(begin + 1)} to ${count(end)} of ${count(total)}`;
    before.disabled = begin === 0;
    after.disabled = end === total;
    await show(begin, end);
  };
  const before = element('button', {type: 'button', onclick: () => move(-kNodesMax)}, 'Previous');
  const after = element('button', {type: 'button', onclick: () => move(kNodesMax)}, 'Next');
  if (total > kNodesMax) box.before(element('div', {class: 'pager'}, before, place, after));
  await move(0);
}

const graphBox = () => element('div', {class: 'graph-box', tabindex: '0', role: 'region',
                                       'aria-label': 'Graph; arrows move it, + and - zoom'});

async function showLaunches(box, page, digest, signal) {
  const {launches, edges} = page;
  const total = launches.reduce((sum, launch) => sum + launch.seconds, 0);
  const devices = new Set(launches.map((launch) => launch.device));
  const most = Math.max(...launches.map((launch) => launch.seconds), 1e-12);
  const graph = graphBox();
  box.append(element('p', {class: 'quiet'},
    'Each node is a launch of a kernel; an edge is data that it reads of an earlier one. The bar at the left is its time. ' +
    'Open a launch for its source and assembly.'), graph);
  if (Number(page.launches_left_out) > 0)
    graph.before(element('p', {class: 'quiet'}, `${count(page.launches_left_out)} more launches are not shown.`));
  if (page.edges_are_cut)
    graph.before(element('p', {class: 'quiet'}, 'There are more edges than can be shown.'));
  const show = (begin, end) => {
    const isShown = (launch) => launch >= begin && launch < end;
    const nodes = launches.slice(begin, end).map((launch, i) => ({
      id: begin + i, kernel: launch.kernel, title: launch.name, heat: launch.seconds / most, kind: 'launch',
      subtitle: [`${duration(launch.seconds)}`, total > 0 ? percent(launch.seconds / total) : '',
                 devices.size > 1 ? launch.device : ''].filter(Boolean).join(' · '),
      tip: `launch ${begin + i}: kernel ${launch.kernel}, ${launch.name}, ${launch.arguments} arguments`}));
    return draw(graph, nodes, edges.filter((edge) => isShown(edge.from) && isShown(edge.to))
      .map((edge) => ({...edge, tip: bytes(edge.bytes)})), {
      signal, onOpen: (node) => { location.hash = programAddress(digest, `/kernel/${node.kernel}`); }});
  };
  await pagedGraph(graph, launches.length, 'launches', show);
}

async function showTensors(box, digest, signal) {
  const answer = await call('graph', {program: digest}, signal);
  const parsed = parseGraph(answer.graph);
  const graph = graphBox();
  box.append(element('p', {class: 'quiet'},
    'The graph as it was sent, after its checks: primitives on tensors. Constants are written into the nodes that use them.'), graph);
  const text = (title, content) => element('details', {}, element('summary', {}, title), codeBlock(content, 'loops'));
  box.append(text('Which nodes share a kernel, as text', answer.partition), text('This graph as text', answer.graph));
  await pagedGraph(graph, parsed.nodes.length, 'nodes', (begin, end) => {
    const drawing = drawingOf(parsed, begin, end);
    return draw(graph, drawing.nodes, drawing.edges, {signal});
  });
}

function timesTable(caption, rows) {
  const most = Math.max(...rows.map((row) => row.seconds), 1e-12);
  return element('div', {}, element('h2', {}, caption), element('table', {class: 'narrow'}, element('tbody', {}, ...rows.map((row) => {
    const filled = element('span', {class: 'filled'});
    filled.style.width = `${row.seconds / most * 100}%`;
    return element('tr', {}, element('td', {}, row.name),
                   element('td', {class: 'number'}, row.off ? 'off' : duration(row.seconds)),
                   element('td', {class: 'wide'}, element('span', {class: 'bar'}, element('span', {class: 'track'}, filled))));
  }))));
}

function showPasses(box, explanation) {
  box.append(timesTable('Passes of the compiler', explanation.passes.map(
    (pass) => ({name: pass.pass, seconds: pass.seconds, off: pass.disabled}))));
  if (explanation.first_call.length > 0)
    box.append(timesTable('The first call, from the graph to the answer', explanation.first_call));
  for (const pass of explanation.passes.filter((other) => other.text))
    box.append(element('h2', {}, `After ${pass.pass}`), codeBlock(pass.text, 'loops'));
}

const kernelsState = {sort: 'run', order: 'desc', offset: 0};

export function programPage({digest, part, refresh}) {
  const head = element('div');
  const box = element('div', {class: 'part', 'data-part': part || 'launches'});
  let table = null;
  let isShown = false;
  const show = async (signal) => {
    const page = await call('program', {program: digest}, signal);
    head.replaceChildren(...heading(page.explanation.program, part));
    if (part === '') await showLaunches(box, page, digest, signal);
    if (part === 'tensors') await showTensors(box, digest, signal);
    if (part === 'passes') showPasses(box, page.explanation);
    if (part === 'queue') box.append(codeBlock(page.explanation.queue, 'loops'));
    if (part !== 'kernels') return;
    kernelsState.program = page.explanation.program.digest;
    kernelsState.offset = 0;
    table = kernelsTable({state: kernelsState, refresh, explains: true, columns: columnsOfProgram});
    box.append(table.element);
  };
  return {
    element: element('div', {}, head, box),
    seconds: part === 'kernels' ? 2 : 0,
    update: async (signal) => {
      if (!isShown) await show(signal);
      isShown = true;
      await table?.update(signal);
    }};
}
