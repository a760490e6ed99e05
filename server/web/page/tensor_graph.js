// Reads the text form of a graph (compiler/graph/text.h, compiler/ir/text.h).

// "%2 = reduce_sum float32[4,1] %0 axes=[1]"
const kNode = /^%(\d+) = (\S+) (\S+)((?: %\d+)*)(?: (.*))?$/;

// Returns {nodes: [{number, op, type, operands, attributes}], results: Map from number to names such as "output 0"}.
export function parseGraph(text) {
  const nodes = [];
  const results = new Map();
  let outputs = 0;
  const addResult = (number, name) => results.set(Number(number), [...(results.get(Number(number)) ?? []), name]);
  for (const line of text.split('\n')) {
    const node = line.trim().match(kNode);
    if (node) {
      nodes.push({number: Number(node[1]), op: node[2], type: node[3], attributes: node[5] ?? '',
                  operands: [...node[4].matchAll(/\d+/g)].map((found) => Number(found[0]))});
      continue;
    }
    const output = line.match(/^output %(\d+)/);
    if (output) addResult(output[1], `output ${outputs++}`);
    const update = line.match(/^update (\d+) %(\d+)/);
    if (update) addResult(update[2], `update of input ${update[1]}`);
  }
  return {nodes, results};
}

const isConstant = (node) => node.op === 'const';
const valueOf = (constant) => constant.attributes.replace(/^value=/, '');

function kindOf(node) {
  if (node.op === 'input') return 'input';
  if (/reduce|sum|matmul|conv|dot/.test(node.op)) return 'contraction';
  if (/reshape|permute|expand|pad|shrink|slice|flip|concat|transpose|broadcast/.test(node.op)) return 'movement';
  return 'elementwise';
}

// Returns a drawing (drawing.js) of the nodes [begin, end), which are in an order in which operands come first. Constants are
// written into the nodes that use them; operands before `begin` are drawn as stubs.
export function drawingOf({nodes, results}, begin, end) {
  const byNumber = new Map(nodes.map((node) => [node.number, node]));
  const shown = nodes.slice(begin, end).filter((node) => !isConstant(node));
  const isShown = new Set(shown.map((node) => node.number));
  const stubs = new Set();
  const edges = new Map();
  const drawn = shown.map((node) => {
    const constants = [];
    for (const operand of node.operands) {
      const source = byNumber.get(operand);
      if (source && isConstant(source)) {
        constants.push(valueOf(source));
        continue;
      }
      if (!isShown.has(operand)) stubs.add(operand);
      edges.set(`${operand} ${node.number}`, {from: operand, to: node.number, tip: source?.type});
    }
    const ends = results.get(node.number);
    const title = [node.op, ...constants].join(' ');
    const subtitle = node.type + (ends ? ` → ${ends.join(', ')}` : '');
    return {id: node.number, title, subtitle, kind: kindOf(node) + (ends ? ' result' : ''),
            tip: `%${node.number} = ${node.op} ${node.type} ${node.attributes}`};
  });
  const before = [...stubs].map((number) => ({
    id: number, title: `%${number}`, subtitle: byNumber.get(number)?.type ?? '', kind: 'stub',
    tip: `%${number} is in an earlier part`}));
  return {nodes: [...before, ...drawn], edges: [...edges.values()]};
}
