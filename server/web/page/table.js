// A table that the daemon sorts: it shows one part of the rows, and asks for another part or order on demand.
import {element, replaceIfChanged} from './elements.js';
import {count} from './format.js';

const kRows = 100;

// Columns: {name (of the API; none: not sortable), title, help, number (aligned right), cell(row, answer)}. Fetch:
// query => {total, rows}. `state` keeps the order and the place while the view is away.
export class SortedTable {
  constructor({caption, columns, fetch, state, onChange, onRow}) {
    Object.assign(this, {columns, fetch, state, onChange, onRow});
    this.body = element('tbody');
    this.headings = columns.map((column) => this.heading(column));
    this.place = element('span', {class: 'place'});
    this.before = element('button', {type: 'button', onclick: () => this.move(-kRows)}, 'Previous');
    this.after = element('button', {type: 'button', onclick: () => this.move(kRows)}, 'Next');
    this.element = element('div', {class: 'table'},
      element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
        element('table', {}, element('caption', {class: 'hidden'}, caption),
                element('thead', {}, element('tr', {}, ...this.headings)), this.body)),
      element('div', {class: 'pager'}, this.before, this.place, this.after));
    this.showOrder();
  }

  heading(column) {
    const attributes = {scope: 'col', class: column.number ? 'number' : '', title: column.help, 'data-column': column.name};
    if (!column.name) return element('th', attributes, column.title);
    return element('th', attributes,
                   element('button', {type: 'button', onclick: () => this.sortBy(column)}, column.title));
  }

  sortBy(column) {
    const isSame = this.state.sort === column.name;
    // Numbers begin with the largest, which is what one looks for.
    const first = column.number ? 'desc' : 'asc';
    this.state.order = isSame ? (this.state.order === 'asc' ? 'desc' : 'asc') : first;
    this.state.sort = column.name;
    this.state.offset = 0;
    this.showOrder();
    this.onChange();
  }

  move(rows) {
    this.state.offset = Math.max(0, this.state.offset + rows);
    this.onChange();
  }

  showOrder() {
    this.columns.forEach((column, i) => {
      const isSorted = column.name !== undefined && column.name === this.state.sort;
      if (isSorted) this.headings[i].setAttribute('aria-sort', this.state.order === 'asc' ? 'ascending' : 'descending');
      else this.headings[i].removeAttribute('aria-sort');
    });
  }

  async update(signal) {
    const {sort, order, offset, ...others} = this.state;
    const answer = await this.fetch({sort, order, offset, limit: kRows, ...others}, signal);
    // Rows can have gone since.
    if (answer.rows.length === 0 && offset > 0 && answer.total > 0) {
      this.state.offset = Math.max(0, Math.floor((answer.total - 1) / kRows) * kRows);
      return this.update(signal);
    }
    this.show(answer);
    return answer;
  }

  show(answer) {
    const first = Number(this.state.offset);
    const total = Number(answer.total);
    this.place.textContent = total === 0 ? 'none' : `${count(first + 1)} to ${count(first + answer.rows.length)} of ${count(total)}`;
    this.before.disabled = first === 0;
    this.after.disabled = first + answer.rows.length >= total;
    this.before.hidden = this.after.hidden = total <= kRows;
    while (this.body.rows.length > answer.rows.length) this.body.deleteRow(-1);
    answer.rows.forEach((row, i) => this.showRow(this.body.rows[i] ?? this.body.insertRow(), row, answer));
  }

  showRow(line, row, answer) {
    replaceIfChanged(line, JSON.stringify(row) + (answer.key ?? ''), () => this.columns.map(
      (column) => element('td', {class: column.number ? 'number' : '', 'data-column': column.name}, column.cell(row, answer))));
    line.onclick = this.onRow && ((event) => {
      // A link in the row leads by itself, and text may be selected.
      if (event.target.closest('a, button') || String(getSelection()) !== '') return;
      this.onRow(row);
    });
    line.classList.toggle('leads', Boolean(this.onRow));
  }
}

// A field that filters the rows as one types.
export function searchField(state, onChange) {
  return element('input', {
    type: 'search', id: 'search', placeholder: 'Search names', 'aria-label': 'Search names', value: state.find ?? '',
    oninput: (event) => {
      state.find = event.target.value;
      state.offset = 0;
      onChange();
    }});
}
