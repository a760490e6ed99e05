// What `kiln top` shows: devices, users, and programs that are on their way to their first run.
import {call} from './api.js';
import {bar, element, replaceIfChanged} from './elements.js';
import {bytes, count, duration, percent} from './format.js';
import {programAddress} from './programs_page.js';

const kProgramsShown = 8;
const kHistory = 60;  // overviews, one every two seconds
const kHealth = {HEALTHY: 'healthy', DRAINING: 'draining', FAILED: 'failed'};
const kWidth = 240;
const kHeight = 44;

// The last loads of each device. They are kept while another view is shown.
const history = new Map();

export function remember(overview) {
  for (const device of overview.devices) {
    const loads = history.get(device.name) ?? [];
    loads.push(device.utilization);
    if (loads.length > kHistory) loads.shift();
    history.set(device.name, loads);
  }
}

// A line of the last loads; the newest is at the right.
function sparkline(loads) {
  const x = d3.scale.linear().domain([kHistory - 1, 0]).range([0, kWidth]);
  const y = d3.scale.linear().domain([0, 1]).range([kHeight - 1, 1]).clamp(true);
  const points = loads.map((load, i) => [x(loads.length - 1 - i), y(load)]);
  const line = d3.svg.line()(points);
  const svg = d3.select(document.createElementNS('http://www.w3.org/2000/svg', 'svg'))
    .attr({class: 'spark', viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  svg.append('path').attr({class: 'area', d: `${line}L${kWidth},${kHeight}L${points[0][0]},${kHeight}Z`});
  svg.append('path').attr({class: 'line', d: line});
  return svg.node();
}

function deviceCard(device) {
  const used = Number(device.memory_used_bytes);
  const total = Number(device.memory_total_bytes);
  const health = kHealth[device.health] ?? 'unknown';
  return element('section', {class: `card ${health}`, 'data-device': device.name},
    element('h3', {}, device.name,
            element('span', {class: `chip ${health}`, title: device.health_message || undefined}, health)),
    element('p', {class: 'quiet'}, `${device.model} · ${device.target} · ${count(device.compute_units)} units`),
    sparkline(history.get(device.name) ?? [device.utilization]),
    element('dl', {class: 'bars'},
      element('dt', {}, 'Load'), element('dd', {}, bar(device.utilization, percent(device.utilization))),
      element('dt', {}, 'Memory'),
      element('dd', {}, bar(total > 0 ? used / total : 0, `${bytes(used)} of ${bytes(total)}`, 'memory')),
      element('dt', {}, 'Queue'), element('dd', {class: 'value'}, count(device.queue_length))));
}

function usesOf(overview) {
  const uses = new Map();
  for (const user of overview?.users ?? [])
    for (const use of user.devices) uses.set(JSON.stringify([user.name, use.device]), {user: user.name, ...use});
  return uses;
}

// The rows of `kiln top`, from the difference of two overviews; the largest share first.
export function userRows(before, now) {
  const earlier = usesOf(before);
  const seconds = Math.max(now.seconds - (before?.seconds ?? now.seconds), 1e-9);
  const rows = [];
  for (const [key, use] of usesOf(now)) {
    if (Number(use.sessions) === 0 && Number(use.runs) === 0) continue;
    const then = earlier.get(key) ?? (before ? {device_seconds: 0, runs: 0} : use);
    rows.push({...use, share: Math.max(use.device_seconds - then.device_seconds, 0) / seconds,
               rate: Math.max(Number(use.runs) - Number(then.runs), 0) / seconds});
  }
  return rows.sort((a, b) => b.share - a.share);
}

function plainTable(caption, headings, rows) {
  const isNumber = headings.map((heading) => heading.startsWith('>'));
  return element('div', {class: 'scroll'}, element('table', {},
    element('caption', {class: 'hidden'}, caption),
    element('thead', {}, element('tr', {}, ...headings.map(
      (heading, i) => element('th', {scope: 'col', class: isNumber[i] ? 'number' : ''}, heading.replace('>', ''))))),
    element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map(
      (cell, i) => element('td', {class: isNumber[i] ? 'number' : ''}, cell)))))));
}

function usersTable(rows) {
  if (rows.length === 0) return element('p', {class: 'quiet'}, 'No user has used a device yet.');
  return plainTable('Users', ['User', 'Device', '>Share', '>Runs/s', '>Waiting', '>Memory', '>Sessions', '>Programs', '>Device time'],
    rows.map((row) => [row.user, row.device, bar(row.share, percent(row.share)), row.rate.toFixed(1), count(row.waiting),
                       bytes(row.memory_bytes), count(row.sessions), count(row.programs), duration(row.device_seconds)]));
}

// Returns the programs that ran since `before`, each with its part of the time; the largest first. Both: {seconds, programs}.
export function programRows(before, now) {
  const earlier = new Map((before?.programs ?? []).map((program) => [program.digest + program.device, program]));
  const seconds = Math.max(now.seconds - (before?.seconds ?? now.seconds), 1e-9);
  const rows = now.programs.map((program) => {
    const then = earlier.get(program.digest + program.device) ?? (before ? {device_seconds: 0, runs: 0} : program);
    const runs = Number(program.runs) - Number(then.runs);
    const used = program.device_seconds - then.device_seconds;
    return {digest: program.digest, name: program.name, device: program.devices.join(', ') || program.device,
            share: used / seconds, rate: runs / seconds, mean: runs > 0 ? used / runs : 0};
  });
  return rows.filter((row) => row.rate > 0).sort((a, b) => b.share - a.share).slice(0, kProgramsShown);
}

function programsTable(rows) {
  if (rows.length === 0) return element('p', {class: 'quiet'}, 'No program is running.');
  return plainTable('Programs', ['Program', 'Device', '>Share', '>Runs/s', '>Time a run'], rows.map((row) => [
    element('a', {href: programAddress(row.digest)}, row.name || row.digest.slice(0, 12)), row.device,
    bar(row.share, percent(row.share)), row.rate.toFixed(1), duration(row.mean)]));
}

function firstCallsTable(calls) {
  return plainTable('First calls', ['First call of', 'Session', 'At', '>Kernels', '>Made', '>Time so far'],
    calls.map((call) => [call.name, call.session, call.part, count(call.kernels), count(call.kernels_made), duration(call.seconds)]));
}

export function livePage() {
  const devices = element('div', {class: 'cards'});
  const users = element('div', {id: 'users'});
  const programs = element('div', {id: 'running'});
  const firstCalls = element('div', {id: 'first-calls'});
  let before = null;  // the programs at the last update
  return {
    element: element('div', {}, element('h1', {class: 'hidden'}, 'Live'),
                     element('h2', {}, 'Devices'), devices, element('h2', {}, 'Users'), users,
                     element('h2', {}, 'Programs that run'), programs, firstCalls),
    seconds: 2,
    update: async (signal) => {
      const page = await call('programs', {sort: 'total', order: 'desc', limit: 500}, signal);
      const now = {seconds: performance.now() / 1000, programs: page.programs};
      const rows = programRows(before, now);
      if (before) replaceIfChanged(programs, JSON.stringify(rows), () => [programsTable(rows)]);
      before = now;
    },
    onOverview(before, now) {
      devices.replaceChildren(...now.devices.map(deviceCard));
      const rows = userRows(before, now);
      replaceIfChanged(users, JSON.stringify(rows), () => [usersTable(rows)]);
      replaceIfChanged(firstCalls, JSON.stringify(now.first_calls), () => now.first_calls.length === 0 ? [] :
        [element('h2', {}, 'On their way to the first run'), firstCallsTable(now.first_calls)]);
    }};
}
