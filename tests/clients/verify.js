// Verifies messages from standard input: [{secret, headers, body}]. Writes true or the error of each.
const { Webhook } = require("standardwebhooks");

const messages = JSON.parse(require("fs").readFileSync(0, "utf8"));
const results = messages.map(({ secret, headers, body }) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    return error.message;
  }
});
console.log(JSON.stringify(results));
