// Asks for a token.
import {setToken} from './api.js';
import {element} from './elements.js';

export function showLogin(main, why, onToken) {
  const input = element('input', {
    id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'token-help'});
  const form = element('form', {
    class: 'login',
    onsubmit: (event) => {
      event.preventDefault();
      setToken(input.value.trim());
      onToken();
    }},
    element('h1', {}, 'Sign in'),
    element('label', {for: 'token'}, 'Token'), input,
    element('button', {type: 'submit'}, 'Sign in'),
    element('p', {id: 'token-help', class: 'quiet'},
            'An admin of the daemon makes tokens with “kiln user add NAME”. A viewer or an admin sees everything, a user ' +
            'their own programs. The token stays in this tab and is forgotten when the tab is closed.'));
  if (why) form.insertBefore(element('p', {class: 'error', role: 'alert'}, why), form.children[1]);
  main.replaceChildren(form);
  input.focus();
}
