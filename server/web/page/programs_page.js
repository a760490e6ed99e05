// All programs that the caller may see.
import {call} from './api.js';
import {element} from './elements.js';
import {bytes, count, duration, shortDigest} from './format.js';
import {SortedTable} from './table.js';

const state = {sort: 'total', order: 'desc', offset: 0};

export const programAddress = (digest, rest = '') => `#/program/${shortDigest(digest)}${rest}`;

const secondsPerRun = (program) => Number(program.runs) > 0 ? program.device_seconds / Number(program.runs) : 0;

const kColumns = [
  {name: 'name', title: 'Name', cell: (p) => element('a', {href: programAddress(p.digest)}, p.name || '(no name)')},
  {name: 'digest', title: 'Program', cell: (p) => element('code', {}, shortDigest(p.digest))},
  {name: 'device', title: 'Device', cell: (p) => p.devices.join(', ') || p.device},
  {name: 'kernels', title: 'Kernels', number: true, help: 'Launches in a run', cell: (p) => count(p.kernels)},
  {name: 'distinct', title: 'Distinct', number: true, help: 'Different kernels', cell: (p) => count(p.distinct_kernels)},
  {name: 'cached', title: 'Cached', number: true, help: 'Kernels that came from the cache', cell: (p) => count(p.kernels_from_cache)},
  {name: 'compile', title: 'Compile', number: true, cell: (p) => duration(p.compile_seconds)},
  {name: 'runs', title: 'Runs', number: true, cell: (p) => count(p.runs)},
  {name: 'run', title: 'Time a run', number: true, cell: (p) => duration(secondsPerRun(p))},
  {name: 'total', title: 'Device time', number: true, cell: (p) => duration(p.device_seconds)},
  {name: 'arena', title: 'Arena', number: true, help: 'Memory of intermediate results', cell: (p) => bytes(p.arena_bytes)},
  {name: 'sessions', title: 'Sessions', number: true, cell: (p) => count(p.sessions)},
];

export function programsPage({refresh, explains}) {
  const table = new SortedTable({
    caption: 'Programs', columns: kColumns, state, onChange: refresh,
    onRow: explains ? (program) => { location.hash = programAddress(program.digest); } : undefined,
    fetch: async (query, signal) => {
      const page = await call('programs', query, signal);
      return {total: Number(page.total), rows: page.programs};
    }});
  return {
    element: element('div', {}, element('h1', {}, 'Programs'), table.element),
    seconds: 2,
    update: (signal) => table.update(signal)};
}
