// The page: which view is shown, and when it is brought up to date.
import {CallError, call, setToken, token} from './api.js';
import {element} from './elements.js';
import {kernelPage} from './kernel_page.js';
import {kernelsPage} from './kernels_page.js';
import {livePage, remember} from './live_page.js';
import {showLogin} from './login.js';
import {programPage} from './program_page.js';
import {programsPage} from './programs_page.js';

const kOverviewSeconds = 2;
const main = document.getElementById('main');
const byId = (id) => document.getElementById(id);

let overview = null;  // the latest
let page = null;
let updating = new AbortController();  // the latest update of the page
let isUpdating = false;
let nextUpdate = 0;                    // performance.now()
let isSigningIn = false;
let wasRefused = false;                // the last token

// Returns the page for the address: #/program/DIGEST/kernel/3
function makePage() {
  const [view, digest, part = '', number = ''] = location.hash.replace(/^#\//, '').split('/').map(decodeURIComponent);
  const common = {refresh: () => updatePage(), explains: overview.explains};
  if (view === 'programs') return {view, ...programsPage(common)};
  if (view === 'kernels') return {view, ...kernelsPage(common)};
  if (view === 'program' && digest && part === 'kernel') return {view: 'programs', ...kernelPage({digest, number})};
  if (view === 'program' && digest) return {view: 'programs', ...programPage({...common, digest, part})};
  return {view: 'live', ...livePage()};
}

function showPage() {
  page = makePage();
  for (const link of document.querySelectorAll('nav [data-view]')) {
    if (link.dataset.view === page.view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `Kiln: ${page.view}`;
  main.replaceChildren(page.element);
  page.onOverview?.(null, overview);
  updatePage();
}

function showState(text, isError) {
  const state = byId('state');
  if (state.textContent !== text) state.textContent = text;
  state.className = isError ? 'error' : 'well';
}

function showCaller() {
  const sees = overview.sees_all ? 'sees all programs' : 'sees own programs';
  byId('caller').textContent = `${overview.user} · ${overview.role}`;
  byId('caller').title = sees;
  byId('version').textContent = `kilnd ${overview.version}, since ${new Date(overview.started).toLocaleString()}`;
  byId('sign-out').hidden = !token();
}

function signIn(why) {
  isSigningIn = true;
  updating.abort();
  page = null;
  overview = null;
  byId('caller').textContent = '';
  byId('sign-out').hidden = true;
  showState('', false);
  showLogin(main, why, () => {
    isSigningIn = wasRefused = false;
    updateOverview();
  });
}

function onError(error) {
  if (error.name === 'AbortError') return;
  if (!(error instanceof CallError)) throw error;
  if (error.status === 401) {
    if (token() === null) return signIn(wasRefused ? 'The daemon does not accept this token.' : '');
    // Perhaps the daemon has been replaced by one that needs none.
    setToken(null);
    wasRefused = true;
    return updateOverview();
  }
  if (error.status === 0) return showState('The daemon does not answer; trying again', true);
  showState(error.message, true);
}

// What asking again does not change: no such program, or the caller may not see it.
const isFinal = (error) => error instanceof CallError && [400, 403, 404].includes(error.status);

// Ends an update that is under way, whose answer would be of another page or order.
async function updatePage() {
  updating.abort();
  if (!page?.update) return;
  const mine = page;
  const here = updating = new AbortController();
  isUpdating = true;
  nextUpdate = mine.seconds > 0 ? performance.now() + mine.seconds * 1000 : Infinity;
  try {
    await mine.update(here.signal);
  } catch (error) {
    if (!isFinal(error)) return onError(error);
    main.replaceChildren(element('p', {class: 'error', role: 'alert'}, error.message));
    page = {view: mine.view};
  } finally {
    if (here === updating) isUpdating = false;
  }
}

async function updateOverview() {
  try {
    const now = await call('overview');
    const before = overview;
    overview = now;
    isSigningIn = wasRefused = false;
    remember(now);
    showCaller();
    showState('live', false);
    if (!page) return showPage();
    page.onOverview?.(before, now);
  } catch (error) {
    onError(error);
  }
}

// One timer for everything. A hidden page asks for nothing.
async function tick() {
  if (!document.hidden && !isSigningIn) {
    await updateOverview();
    if (page && !isUpdating && performance.now() >= nextUpdate) updatePage();
  }
  setTimeout(tick, kOverviewSeconds * 1000);
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('input, textarea')) return;
  const views = {1: '#/live', 2: '#/programs', 3: '#/kernels'};
  if (views[event.key]) location.hash = views[event.key];
  if (event.key === '/' && byId('search')) {
    event.preventDefault();
    byId('search').focus();
  }
}

byId('sign-out').addEventListener('click', () => {
  setToken(null);
  signIn('');
});
addEventListener('keydown', onKey);
addEventListener('hashchange', () => { if (overview) showPage(); });
document.addEventListener('visibilitychange', () => { if (!document.hidden && !isSigningIn) updateOverview(); });
tick();
