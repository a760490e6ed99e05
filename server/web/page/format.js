// Quantities for people, as `kiln` prints them (clients/cli/format.h).

// Three significant digits for values below 1000.
function digits(value) {
  if (value < 10) return value.toFixed(2);
  if (value < 100) return value.toFixed(1);
  return value.toFixed(0);
}

export function bytes(count) {
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let value = Number(count);
  if (value < 1024) return `${value} B`;
  let unit = -1;
  do {
    value /= 1024;
    ++unit;
  } while (value >= 1024 && unit + 1 < units.length);
  return `${digits(value)} ${units[unit]}`;
}

export function duration(seconds) {
  if (!(seconds > 0)) return '-';
  if (seconds < 1e-6) return `${(seconds * 1e9).toFixed(0)} ns`;
  if (seconds < 1e-3) return `${digits(seconds * 1e6)} µs`;
  if (seconds < 1) return `${digits(seconds * 1e3)} ms`;
  if (seconds < 120) return `${digits(seconds)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(0)} min`;
  return `${(seconds / 3600).toFixed(0)} h`;
}

export function rate(amount, seconds, unit) {
  if (!(seconds > 0) || !(amount > 0)) return '-';
  return `${digits(amount / seconds / 1e9)} G${unit}/s`;
}

export const percent = (share) => `${(share * 100).toFixed(0)}%`;

export const count = (number) => Number(number).toLocaleString('en-US');

export const shortDigest = (digest) => digest.slice(0, 12);

export const time = (timestamp) => new Date(timestamp).toLocaleString();
