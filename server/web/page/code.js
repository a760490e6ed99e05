// Shows code with its comments, numbers and words in colours.
import {element} from './elements.js';

// Of longer texts the colours would take longer than the rest.
const kColouredMax = 400000;

const kNumber = String.raw`\b(?:0[xX][\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)[fFuUlLh]*\b`;
const kLanguages = {
  source: [
    ['comment', String.raw`//[^\n]*|/\*[^]*?\*/`],
    ['word', String.raw`\b(?:for|if|else|while|return|const|restrict|void|int|long|uint|ulong|short|ushort|char|uchar|float|double|half|bool|__kernel|__global|__local|__private|kernel|global|local)\d*\b`],
    ['name', String.raw`\b(?:get_\w+|fma|exp|exp2|log|log2|sqrt|rsqrt|fmin|fmax|fabs|select|as_\w+|convert_\w+|barrier)\b`],
    ['number', kNumber]],
  assembly: [
    // The addresses of instructions, too: they are beside the point.
    ['comment', String.raw`(?:#|//|;)[^\n]*|^\s*[\da-f]+:(?=\s)`],
    ['label', String.raw`^[\w.$]+:`],
    ['word', String.raw`(?<=^\s+(?:[\da-f]+:\s+)?(?:@!?%?\w+\s+)?)[a-zA-Z][\w.]*`],
    ['name', String.raw`%?\b(?:[xyz]mm\d+|r(?:[abcd]x|[sd]i|[sb]p|ip|\d+[dwb]?)|e(?:[abcd]x|[sd]i|[sb]p)|k[0-7]|[vs]\d+|[vs]\[[\d:]+\])\b|%\w+`],
    ['number', String.raw`\$?-?${kNumber}`]],
  loops: [
    ['comment', String.raw`#[^\n]*`],
    ['word', String.raw`^\s*(?:buffer|grid|stage|split|order|bind|tile|ahead|reduce)\b|\b(?:read|write|local|reduce|task|thread|vector|unroll)\b`],
    ['name', String.raw`\b(?:sum|max|min|exp2|log2|sqrt|reciprocal|neg|where|sin)\b`],
    ['number', kNumber]],
};

function pattern(rules) {
  return new RegExp(rules.map(([kind, text]) => `(?<${kind}>${text})`).join('|'), 'gm');
}

function coloured(text, language) {
  const found = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(pattern(kLanguages[language]))) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    found.append(text.slice(end, match.index), element('span', {class: `code-${kind}`}, match[0]));
    end = match.index + match[0].length;
  }
  found.append(text.slice(end));
  return found;
}

// Language: "source" (a C), "assembly" or "loops" (also schedules).
export function codeBlock(text, language) {
  const code = element('code', {class: language});
  code.append(text.length <= kColouredMax ? coloured(text, language) : text);
  return element('pre', {tabindex: '0', class: 'code'}, code);
}
