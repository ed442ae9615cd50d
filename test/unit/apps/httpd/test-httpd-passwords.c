/* SPDX-License-Identifier: MIT
 *
 * Files of users and hashes: which lines are valid, and finding a user's hash.
 */
#include "passwords.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "captured.h"
#include "fake-os.h"
#include "has.h"
#include "keyed-digest.h"
#include "test-main.h"

#define BCRYPT "$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"
#define SHA256 "$5$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1"
#define X10    "xxxxxxxxxx"
#define X86    X10 X10 X10 X10 X10 X10 X10 X10 "xxxxxx"
#define X100   X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X509   X100 X100 X100 X100 X100 "xxxxxxxxx"
#define X510   X509 "x"
#define SHA512 "$6$rounds=1000$salt$" X10 X10 X10 X10 X10 X10 X10 X10 "xxxxxx"

static char path[] = "/tmp/sxe-passwords-XXXXXX";
static const uint64_t secret[2] = {1, 2};
static char said[4096];

static void
set_up(void)
{
    const int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
tear_down(void)
{
    unlink(path);
    fake_os_reset();
}

/* Let passwords_read() read a file with this text. */
static struct passwords *
read_text(const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    struct captured errors;
    struct passwords *passwords;

    fwrite(text, 1, length, file);
    fclose(file);
    errors = capture(STDERR_FILENO, tmpfile());
    passwords = passwords_read("here: ", path);
    fflush(stderr);
    captured_text(&errors, said, sizeof(said));
    return passwords;
}

/* ---- The digest ---- */

START_TEST(the_digest_is_that_of_its_reference)
{
    /* The first two vectors of vectors_sip128 in the reference implementation, and the ninth. */
    static const struct {
        size_t length;
        uint64_t half[2];
    } vectors[] = {{0, {UINT64_C(0xe6a825ba047f81a3), UINT64_C(0x930255c71472f66d)}},
                   {1, {UINT64_C(0x44af996bd8c187da), UINT64_C(0x45fc229b11597634)}}};
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    static const unsigned char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    for (unsigned i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct keyed_digest digest = keyed_digest(key, bytes, vectors[i].length);

        ck_assert_uint_eq(digest.half[0], vectors[i].half[0]);
        ck_assert_uint_eq(digest.half[1], vectors[i].half[1]);
    }
    ck_assert_uint_ne(keyed_digest(key, bytes, 9).half[0], keyed_digest(key, bytes, 10).half[0]);
    ck_assert_uint_ne(keyed_digest(key, bytes, 8).half[1], keyed_digest(secret, bytes, 8).half[1]);
}
END_TEST

/* ---- Lines ---- */

#define USER(hash) "ann:" hash "\n"

static const char *const good[] = {
    USER(BCRYPT),
    USER(SHA256),
    USER(SHA512),
    "ann:" BCRYPT,
    "# a comment\n\n\r\n" USER(BCRYPT) "#\n",
    "ann:" BCRYPT "\r\n",
    "ann:" BCRYPT ":since 2026\n",
    "ann:" BCRYPT "\nZo\xc3\xab:" BCRYPT "\n" X509 ":" BCRYPT "\n",
    USER("$6$a,~.'$" X86),
    USER("$5$rounds=5000$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1"),
};

START_TEST(good_lines_are_taken)
{
    struct passwords *passwords = read_text(good[_i], strlen(good[_i]));
    bool is_known = false;

    ck_assert_msg(passwords != NULL, "%s", said);
    ck_assert_str_eq(said, "");
    ck_assert_uint_eq(passwords_find(passwords, (struct sxe_span){"ann", 3}, &is_known)[0], '$');
    ck_assert(is_known);
    passwords_free(passwords);
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} bad[] = {
    {"", ":1: the file has no user; add one with htpasswd -B\n"},
    {"\n# a\n", ":3: the file has no user"},
    {"# a\nann\n", ":2: the line is not 'user:hash'; make it with htpasswd -B\n"},
    {":" BCRYPT "\n", ":1: the line is not 'user:hash'"},
    {USER(BCRYPT) "bob:" BCRYPT "\n" USER(SHA256), ":3: the user 'ann' is on line 1, too; remove"},
    {USER("secret"),
     ":1: the password of 'ann' is a DES hash or a plain password, which is not "
     "safe; make the line with htpasswd -B, or the hash with mkpasswd -m sha-512\n"},
    {USER(""), "is a DES hash or a plain password"},
    {USER("rqXexS6ZhobKA"), "is a DES hash or a plain password"},
    {USER("$apr1$a$b"), "is an MD5 hash (apr1), which is guessed too fast"},
    {USER("$1$a$b"), "is an MD5 hash, which is guessed too fast"},
    {USER("{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="), "is a SHA-1 hash without salt"},
    {USER("{SSHA}a"), "is a SHA-1 hash, which"},
    {USER("$y$j9T$a$b"), "is a yescrypt hash, which is not supported"},
    {USER("$argon2id$v=19$a"), "is of a kind that is not supported"},
    {USER("$2"), "is of a kind that is not supported"},
    {USER("$2x$05$a"), "is of a kind that is not supported"},
    {USER("$2y"), "is of a kind that is not supported"},
    {USER(BCRYPT "5"), "is a damaged bcrypt hash"},
    {USER("$2y$5$abc"), "is a damaged bcrypt hash"},
    {USER("$2y$05abc"), "is a damaged bcrypt hash"},
    {USER("$2y$05$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ0123!"), "is a damaged bcrypt"},
    {USER("$2y$16$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"),
     "has a cost that is not from 4 to 15"},
    {USER("$2y$03$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"), "has a cost that"},
    {USER("$5$salt$short"), "is a damaged SHA-crypt hash"},
    {USER("$6$salt"), "is a damaged SHA-crypt hash"},
    {USER("$6$12345678901234567$" X10), "is a damaged SHA-crypt hash"},
    {USER("$6$salt$" X10 X10 X10 X10 X10 X10 X10 X10 "xxxxx!"), "is a damaged SHA-crypt hash"},
    {USER("$6$rounds=999$salt$x"), "has rounds that are not from 1000 to 5000000"},
    {USER("$6$rounds=5000001$salt$x"), "has rounds that are not from 1000"},
    {USER("$6$rounds=x$salt$x"), "has rounds that are not from 1000"},
    {USER("$6$rounds=01000$salt$x"), "has rounds that are not from 1000"},
    {USER("$6$rounds=+1000$salt$x"), "has rounds that are not from 1000"},
    {USER("$6$sa;lt$" X86), "is a damaged SHA-crypt hash"},
    {USER("$6$sa lt$" X86), "is a damaged SHA-crypt hash"},
    {USER("$6$sa\xe9lt$" X86), "is a damaged SHA-crypt hash"},
    {"a\tn:" BCRYPT, ":1: the user's name has a control character, so it could never log in\n"},
    {"a\x7f:" BCRYPT, ":1: the user's name has a control character"},
    {X510 ":" BCRYPT, ":1: the user's name has more than 509 bytes, so it could never log in\n"},
};

START_TEST(bad_lines_are_named)
{
    ck_assert_ptr_null(read_text(bad[_i].text, strlen(bad[_i].text)));
    check_has(said, "sxe-httpd: here: /tmp/sxe-passwords-");
    check_has(said, bad[_i].says);
}
END_TEST

/* ---- Files ---- */

START_TEST(a_file_that_cannot_be_read_is_named)
{
    struct captured errors = capture(STDERR_FILENO, tmpfile());

    ck_assert_ptr_null(passwords_read("", "/nonexistent"));
    captured_text(&errors, said, sizeof(said));
    ck_assert_str_eq(said, "sxe-httpd: cannot read the file of passwords '/nonexistent': No such "
                           "file or directory; it must be a text of at most 1 MiB\n");
}
END_TEST

START_TEST(a_file_that_is_too_long_is_refused)
{
    static char text[PASSWORDS_FILE_MAX + 1];
    struct passwords *passwords;

    memset(text, '\n', sizeof(text));
    memcpy(text, USER(SHA256), strlen(USER(SHA256)));
    passwords = read_text(text, PASSWORDS_FILE_MAX);
    ck_assert_ptr_nonnull(passwords);
    passwords_free(passwords);
    ck_assert_ptr_null(read_text(text, sizeof(text)));
    check_has(said, ": File too large; it must be");
    ck_assert_ptr_null(read_text("a\0b", 3));
    check_has(said, ": Invalid or incomplete multibyte or wide character; it must be a text");
}
END_TEST

START_TEST(a_fifo_is_not_waited_for)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_ptr_null(passwords_read("", path));
}
END_TEST

START_TEST(each_call_may_fail)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_OPEN, FAKE_READ};
    unsigned nth = 0;
    struct passwords *passwords = read_text(USER(BCRYPT), strlen(USER(BCRYPT)));

    while (fake_os_injected() > 0 || nth == 0) {
        passwords_free(passwords);
        fake_os_reset();
        fake_os_sweep(kinds, 4, ++nth, false, EIO);
        passwords = passwords_read("", path);
        ck_assert_int_eq(passwords == NULL, fake_os_injected() > 0);
    }
    passwords_free(passwords);
    ck_assert_uint_gt(nth, 4);
    passwords_free(NULL);
}
END_TEST

/* ---- Users ---- */

START_TEST(an_unknown_user_has_the_hash_of_another_one)
{
    static const char text[] = "bob:" BCRYPT "\nann:" SHA256 "\nb:" SHA512 "\n";
    struct passwords *passwords = read_text(text, strlen(text));
    unsigned found[3] = {0};
    bool is_known;

    ck_assert_str_eq(passwords_find(passwords, (struct sxe_span){"bob", 3}, &is_known), BCRYPT);
    ck_assert_str_eq(passwords_find(passwords, (struct sxe_span){"ann", 3}, &is_known), SHA256);
    ck_assert_str_eq(passwords_find(passwords, (struct sxe_span){"bob", 1}, &is_known), SHA512);
    ck_assert(is_known);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        const struct sxe_span user = {name, (size_t)snprintf(name, sizeof(name), "bo%u", i)};
        const char *hash = passwords_find(passwords, user, &is_known);

        ck_assert(!is_known);
        ck_assert_ptr_eq(passwords_find(passwords, user, &is_known), hash);
        found[hash[1] == '2' ? 0 : hash[1] == '5' ? 1 : 2]++;
    }
    ck_assert(found[0] > 10 && found[1] > 10 && found[2] > 10);
    ck_assert_ptr_nonnull(passwords_find(passwords, (struct sxe_span){"", 0}, &is_known));
    ck_assert(!is_known);
    passwords_free(passwords);
}
END_TEST

/* How many of 100 unknown users have hashes of the same kind in both files. */
static unsigned
number_of_equal_choices(const struct passwords *one, const struct passwords *other)
{
    unsigned number = 0;
    bool is_known;

    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        const struct sxe_span user = {name, (size_t)snprintf(name, sizeof(name), "no%u", i)};

        number += strcmp(passwords_find(one, user, &is_known),
                         passwords_find(other, user, &is_known)) == 0;
    }
    return number;
}

/* Otherwise the hashes of an unknown user would take different times in the workers of a server,
 * and after a reload, but that of a user who exists would not. */
START_TEST(an_unknown_user_has_the_same_hash_in_each_process)
{
    static const char text[] = "bob:" BCRYPT "\nann:" SHA256 "\nb:" SHA512 "\n";
    static const char salted[] = "#\nbob:" BCRYPT "\nann:" SHA256 "\nb:" SHA512 "\n";
    struct passwords *one = read_text(text, strlen(text));
    struct passwords *again = read_text(text, strlen(text));
    struct passwords *changed = read_text(salted, strlen(salted));

    ck_assert_uint_eq(number_of_equal_choices(one, again), 100);
    /* nobody can compute the choice */
    ck_assert_uint_lt(number_of_equal_choices(one, changed), 60);
    passwords_free(one);
    passwords_free(again);
    passwords_free(changed);
}
END_TEST

static Suite *
passwords_suite(void)
{
    Suite *suite = suite_create("httpd-passwords");
    TCase *tcase = tcase_create("passwords");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_digest_is_that_of_its_reference);
    tcase_add_loop_test(tcase, good_lines_are_taken, 0, (int)(sizeof(good) / sizeof(good[0])));
    tcase_add_loop_test(tcase, bad_lines_are_named, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(tcase, a_file_that_cannot_be_read_is_named);
    tcase_add_test(tcase, a_file_that_is_too_long_is_refused);
    tcase_add_test(tcase, a_fifo_is_not_waited_for);
    tcase_add_test(tcase, each_call_may_fail);
    tcase_add_test(tcase, an_unknown_user_has_the_hash_of_another_one);
    tcase_add_test(tcase, an_unknown_user_has_the_same_hash_in_each_process);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(passwords_suite());
}
