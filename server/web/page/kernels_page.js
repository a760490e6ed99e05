// All kernels of all programs that the caller may see, and the same table for one program.
import {call} from './api.js';
import {bar, element} from './elements.js';
import {count, duration, percent, rate} from './format.js';
import {programAddress} from './programs_page.js';
import {SortedTable, searchField} from './table.js';

const kSchedules = {
  heuristic: 'The compiler’s heuristic chose the schedule',
  tuned: 'A search found this schedule to be the fastest',
  plain: 'The proof refused the chosen schedule: slow, but right. Please report this'};

const kernelAddress = (row) => programAddress(row.program, `/kernel/${row.number}`);
const seconds = (row) => row.kernel.seconds_median;
const secondsPerRun = (row) => seconds(row) * row.kernel.launches;

function roofline({kernel}) {
  if (!(kernel.roofline_seconds > 0) || !(kernel.seconds_median > 0)) return '-';
  const share = kernel.roofline_seconds / kernel.seconds_median;
  return bar(share, `${percent(share)} ${kernel.roofline_limit}`, share < 0.5 ? 'low' : '');
}

function share(row, answer) {
  return answer.secondsPerRun > 0 ? percent(secondsPerRun(row) / answer.secondsPerRun) : '-';
}

const kColumns = [
  {name: 'name', title: 'Kernel', cell: (r) => element('a', {href: kernelAddress(r)}, r.kernel.name)},
  {name: 'program', title: 'Program', cell: (r) => r.program_name},
  {name: 'launches', title: 'Launches', number: true, help: 'In a run of its program', cell: (r) => count(r.kernel.launches)},
  {name: 'median', title: 'Median', number: true, help: 'Time of one launch',
   cell: (r) => duration(seconds(r)) + (r.kernel.cold ? ' (cold)' : '')},
  {name: 'best', title: 'Best', number: true, cell: (r) => duration(r.kernel.seconds_min)},
  {name: 'run', title: 'Time a run', number: true, help: 'All launches in a run of its program', cell: (r) => duration(secondsPerRun(r))},
  {title: 'Share', number: true, help: 'Of a run of all listed programs', cell: share},
  {name: 'compute', title: 'Compute', number: true, cell: (r) => rate(r.kernel.flops, seconds(r), 'FLOP')},
  {name: 'memory', title: 'Memory', number: true, cell: (r) => rate(r.kernel.bytes, seconds(r), 'B')},
  {name: 'roofline', title: 'Roofline', number: true,
   help: 'Part of the speed that the device allows, and what limits it. Known once a tuning has measured the device', cell: roofline},
  {name: 'schedule', title: 'Schedule', help: 'Who chose it',
   cell: (r) => element('span', {class: `chip ${r.schedule_kind}`, title: kSchedules[r.schedule_kind]}, r.schedule_kind)},
  {name: 'samples', title: 'Samples', number: true, help: 'Launches that were timed', cell: (r) => count(r.kernel.samples)},
];

export function kernelsTable({state, refresh, explains, columns = kColumns}) {
  return new SortedTable({
    caption: 'Kernels', columns, state, onChange: refresh,
    onRow: explains ? (row) => { location.hash = kernelAddress(row); } : undefined,
    fetch: async (query, signal) => {
      const page = await call('kernels', query, signal);
      return {total: Number(page.total), rows: page.rows, secondsPerRun: page.seconds_per_run, key: String(page.seconds_per_run)};
    }});
}

export const columnsOfProgram = kColumns.filter((column) => column.name !== 'program');

const state = {sort: 'run', order: 'desc', offset: 0};

export function kernelsPage({refresh, explains}) {
  const table = kernelsTable({state, refresh, explains});
  return {
    element: element('div', {}, element('div', {class: 'title'}, element('h1', {}, 'Kernels'), searchField(state, refresh)), table.element),
    // There may be ten thousand of them, and their times change slowly.
    seconds: 5,
    update: (signal) => table.update(signal)};
}
