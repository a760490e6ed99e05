// Calls of the daemon. The token is kept for this tab only, and is sent in a header, never in an address.

const kToken = 'kiln.token';

export function token() { return sessionStorage.getItem(kToken); }
export function setToken(value) {
  if (value) sessionStorage.setItem(kToken, value);
  else sessionStorage.removeItem(kToken);
}

export class CallError extends Error {
  constructor(status, reason, message) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

// Returns the answer to /web/api/NAME. Throws a CallError; its status is 0 if the daemon did not answer.
export async function call(name, query = {}, signal = undefined) {
  const given = Object.entries(query).filter(([, value]) => value !== '' && value !== undefined);
  const address = `api/${name}?${new URLSearchParams(given)}`;
  const headers = token() ? {Authorization: `Bearer ${token()}`} : {};
  let response;
  try {
    response = await fetch(address, {headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new CallError(0, 'UNREACHABLE', 'The daemon does not answer.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new CallError(response.status, answer.reason ?? '', answer.message ?? `HTTP ${response.status}`);
  return answer;
}
