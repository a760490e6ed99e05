// One kernel: how fast it is, its loops, schedule, source and assembly, two of them side by side.
import {call} from './api.js';
import {codeBlock} from './code.js';
import {element} from './elements.js';
import {bytes, count, duration, percent, rate, shortDigest} from './format.js';
import {programAddress} from './programs_page.js';

const kTexts = [
  {name: 'Loops', language: 'loops', text: (kernel) => kernel.ir},
  {name: 'Schedule', language: 'loops', text: (kernel) => kernel.schedule || 'The plain schedule: no directives.'},
  {name: 'Source', language: 'source', text: (kernel) => kernel.source},
  {name: 'Assembly', language: 'assembly', text: (kernel) => kernel.assembly},
];
// The texts that are shown, for the next kernel, too.
const chosen = ['Source', 'Assembly'];

function pane(kernel, side) {
  const shown = element('div', {class: 'pane-text'});
  const tabs = kTexts.map(({name}) => element('button', {
    type: 'button', role: 'tab', 'data-text': name, onclick: () => show(name)}, name));
  const show = (name) => {
    chosen[side] = name;
    const {language, text} = kTexts.find((other) => other.name === name);
    tabs.forEach((tab) => tab.setAttribute('aria-selected', String(tab.textContent === name)));
    shown.replaceChildren(text(kernel) ? codeBlock(text(kernel), language)
                                       : element('p', {class: 'quiet'}, `This kernel has no ${name.toLowerCase()}.`));
  };
  show(chosen[side]);
  return element('section', {class: 'pane', 'aria-label': side === 0 ? 'Left' : 'Right'},
                 element('div', {class: 'tabs', role: 'tablist'}, ...tabs), shown);
}

export function facts(pairs) {
  return element('dl', {class: 'facts'}, ...pairs.filter(([, value]) => value).map(
    ([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
}

function rooflineText(kernel) {
  if (!(kernel.roofline_seconds > 0)) return '';
  const text = `${duration(kernel.roofline_seconds)}, limited by ${kernel.roofline_limit}`;
  return kernel.seconds_median > 0 ? `${text}; reaches ${percent(kernel.roofline_seconds / kernel.seconds_median)}` : text;
}

function scheduleText(row) {
  const {kernel} = row;
  if (row.schedule_kind !== 'tuned') return kernel.setting_refusal ? `heuristic: ${kernel.setting_refusal}` : row.schedule_kind;
  if (!(kernel.seconds_tuned > 0)) return 'tuned';
  return `tuned: ${duration(kernel.seconds_tuned)}; the heuristic’s ${duration(kernel.seconds_heuristic)}`;
}

function kernelFacts(row) {
  const {kernel} = row;
  return facts([
    ['Median', duration(kernel.seconds_median) + (kernel.cold ? ' (cold)' : '')], ['Best', duration(kernel.seconds_min)],
    ['Launches a run', count(kernel.launches)], ['Samples', count(kernel.samples)],
    ['Work', `${count(kernel.flops)} FLOP`], ['Memory', bytes(kernel.bytes)],
    ['Compute', rate(kernel.flops, kernel.seconds_median, 'FLOP')], ['Traffic', rate(kernel.bytes, kernel.seconds_median, 'B')],
    ['Compile time', kernel.from_cache ? 'from the cache' : duration(kernel.compile_seconds).replace(/^-$/, '')],
    ['Roofline', rooflineText(kernel)], ['Schedule', scheduleText(row)], ['Device', row.device]]);
}

export function kernelPage({digest, number}) {
  const box = element('div', {}, element('p', {class: 'quiet'}, 'Loading …'));
  return {
    element: box,
    update: async (signal) => {
      const row = await call('kernel', {program: digest, kernel: number}, signal);
      const {kernel} = row;
      const shown = [
        element('p', {class: 'path'}, element('a', {href: '#/programs'}, 'Programs'), ' / ',
                element('a', {href: programAddress(row.program)}, row.program_name || shortDigest(row.program)), ' / ',
                element('a', {href: programAddress(row.program, '/kernels')}, 'kernels')),
        element('h1', {}, `${row.number}  ${kernel.name}`), kernelFacts(row),
        kernel.refusal ? element('p', {class: 'error'},
          `The proof refused the chosen schedule (${kernel.refusal}). The kernel runs with the plain one; please report this.`) : null,
        element('div', {class: 'panes'}, pane(kernel, 0), pane(kernel, 1))];
      box.replaceChildren(...shown.filter((part) => part !== null));
    }};
}
